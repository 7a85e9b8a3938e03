import { constants, setPriority } from 'node:os';
import { main } from './cli.js';

try {
  // On a machine that it shares with the server, a generator that gets its turn late would measure itself.
  setPriority(0, constants.priority.PRIORITY_HIGHEST);
} catch {
  // Only some may: else late starts make a step void.
}
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // Who reads may leave early, as `head` does: the run goes on, for its files and its exit code.
    if (error.code !== 'EPIPE') throw error;
  });
process.exitCode = await main(process.argv.slice(2));
