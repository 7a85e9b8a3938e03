import { constants, setPriority } from 'node:os';
import { main } from './cli.js';

try {
  // On a machine that it shares with the server, a generator that gets its turn late would measure itself.
  setPriority(0, constants.priority.PRIORITY_HIGHEST);
} catch {
  // Only some may: else late starts make a step void.
}
process.exitCode = await main(process.argv.slice(2));
