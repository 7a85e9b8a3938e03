import { constants, setPriority } from 'node:os';
import { diff } from './diff/diff.js';
import { readArguments, readText, type Command, type CommandResult, type Given, type Print } from './options.js';
import { ramp } from './ramp/ramp.js';
import { replay } from './replay.js';
import { Report } from './report.js';
import { EXIT, USAGE, UsageError } from './usage.js';

const COMMANDS: Readonly<Record<Command, (operand: string, options: Given, print: Print) => Promise<CommandResult>>> = {
  ramp,
  replay,
  diff,
};

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Runs a command and returns the exit code of the process. */
async function main(args: readonly string[]): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) {
    console.log(USAGE);
    return args.length === 0 ? EXIT.usage : EXIT.holds;
  }
  let begun: Report | null = null;
  const stop = (signal: (typeof SIGNALS)[number]): never => {
    const exitCode = 128 + constants.signals[signal];
    begun?.fail(exitCode, `It was stopped by ${signal}.`);
    process.exit(exitCode);
  };
  try {
    const { command, operand, options } = readArguments(args);
    begun = new Report(command, options, command === 'ramp' ? readText(options, 'from') : operand);
    // Before ten minutes of load, not after them; and no result of an older run stays.
    begun.begin();
    for (const signal of SIGNALS) process.on(signal, stop);
    const { exitCode, json, chart } = await COMMANDS[command](operand, options, begun.print);
    begun.write(exitCode, json, chart);
    return exitCode;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(isUsage ? error.message : error);
    const exitCode = isUsage ? EXIT.usage : EXIT.broken;
    begun?.fail(exitCode, (error as Error).message);
    return exitCode;
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
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
    // The reader of stdout may leave early, as `head` does: the run goes on, for its files and its exit code.
    if (error.code !== 'EPIPE') throw error;
  });
process.exitCode = await main(process.argv.slice(2));
