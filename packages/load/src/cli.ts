import { writeFileSync } from 'node:fs';
import { diff } from './diff/diff.js';
import { readArguments, type Command, type CommandResult, type Given, type Print } from './options.js';
import { pageOf } from './page.js';
import { ramp } from './ramp/ramp.js';
import { replay } from './replay.js';
import { EXIT, USAGE, UsageError } from './usage.js';

const COMMANDS: Readonly<Record<Command, (operand: string, options: Given, print: Print) => Promise<CommandResult>>> = {
  ramp,
  replay,
  diff,
};

/** Runs a command and returns the exit code of the process. */
export async function main(args: readonly string[]): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) {
    console.log(USAGE);
    return args.length === 0 ? EXIT.usage : EXIT.holds;
  }
  try {
    const { command, operand, options } = readArguments(args);
    const said: string[] = [];
    const { exitCode, json, chart } = await COMMANDS[command](operand, options, (line) => {
      said.push(line);
      console.log(line);
    });
    const title = `nestjs-perf-load ${command}: ${exitCode}`;
    write(options, 'json', () => `${JSON.stringify({ command, exitCode, ...json }, null, 2)}\n`);
    write(options, 'html', () => pageOf(title, said, chart));
    return exitCode;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(isUsage ? error.message : error);
    return isUsage ? EXIT.usage : EXIT.broken;
  }
}

function write(options: Given, name: 'json' | 'html', text: () => string): void {
  const file = options[name];
  if (typeof file !== 'string') return;
  try {
    writeFileSync(file, text());
  } catch (error) {
    throw new UsageError(`--${name} ${file} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
