import { appendFileSync, writeFileSync } from 'node:fs';
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

const OUTPUTS = ['json', 'html'] as const;

/** Runs a command and returns the exit code of the process. */
export async function main(args: readonly string[]): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) {
    console.log(USAGE);
    return args.length === 0 ? EXIT.usage : EXIT.holds;
  }
  try {
    const { command, operand, options } = readArguments(args);
    // Before ten minutes of load, not after them.
    for (const name of OUTPUTS) write(options, name, (file) => appendFileSync(file, ''));
    const said: string[] = [];
    const { exitCode, json, chart } = await COMMANDS[command](operand, options, (line) => {
      said.push(line);
      console.log(line);
    });
    const title = `nestjs-perf-load ${command}: ${exitCode}`;
    const text = `${JSON.stringify({ command, exitCode, ...json }, null, 2)}\n`;
    write(options, 'json', (file) => writeFileSync(file, text));
    write(options, 'html', (file) => writeFileSync(file, pageOf(title, said, chart)));
    return exitCode;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(isUsage ? error.message : error);
    return isUsage ? EXIT.usage : EXIT.broken;
  }
}

function write(options: Given, name: (typeof OUTPUTS)[number], to: (file: string) => void): void {
  const file = options[name];
  if (typeof file !== 'string') return;
  try {
    to(file);
  } catch (error) {
    throw new UsageError(`--${name} ${file} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
