import { constants, setPriority } from 'node:os';
import { diff } from './diff/diff.js';
import { readArguments, readText, type Command, type CommandResult, type Given } from './options.js';
import { ramp } from './ramp/ramp.js';
import { replay } from './replay.js';
import { Report } from './report.js';
import { EXIT, USAGE, UsageError } from './usage.js';

const COMMANDS: Readonly<Record<Command, (operand: string, options: Given) => Promise<CommandResult>>> = {
  ramp,
  replay,
  diff,
};

/** Runs a command and returns the exit code of the process. */
async function main(args: readonly string[]): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) {
    console.log(USAGE);
    return args.length === 0 ? EXIT.usage : EXIT.holds;
  }
  let report: Report | null = null;
  try {
    const { command, operand, options } = readArguments(args);
    report = new Report(command, readText(options, 'json'), command === 'ramp' ? readText(options, 'from') : operand);
    const { exitCode, figures } = await COMMANDS[command](operand, options);
    report.write(exitCode, figures);
    return exitCode;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(isUsage ? error.message : error);
    const exitCode = isUsage ? EXIT.usage : EXIT.broken;
    try {
      report?.write(exitCode, { error: (error as Error).message });
    } catch {
      // That it cannot be written may be the error.
    }
    return exitCode;
  }
}

try {
  // On a machine that it shares with the server, a generator that gets its turn late would measure itself.
  setPriority(0, constants.priority.PRIORITY_HIGHEST);
} catch {
  // Only some may: else late starts make a step void.
}
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of stdout may leave early, as `head` does: the run goes on, for its file and its exit code.
    if (error.code !== 'EPIPE') throw error;
  });
process.exitCode = await main(process.argv.slice(2));
