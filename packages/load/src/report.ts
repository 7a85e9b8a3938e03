import { writeFileSync } from 'node:fs';
import type { Command, Given, Print } from './options.js';
import { pageOf, type Chart } from './page.js';
import { UsageError } from './usage.js';

const NOTHING: Chart = { title: 'Nothing was measured', bars: [] };

/** What is said of a run, and the files that hold it. */
export class Report {
  /** Of the result, before its end. */
  private known: object = {};
  private readonly said: string[] = [];

  constructor(
    private readonly command: Command,
    private readonly options: Given,
  ) {}

  readonly print: Print = (line, known) => {
    this.said.push(line);
    this.known = known ?? this.known;
    console.log(line);
  };

  /** @throws UsageError where a file cannot be written */
  begin(): void {
    this.write(null, { error: 'It has not ended.' });
  }

  /** With what is known. */
  fail(exitCode: number, error: string): void {
    try {
      this.write(exitCode, { error, ...this.known });
    } catch (cause) {
      console.error((cause as Error).message);
    }
  }

  /** @throws UsageError where a file cannot be written any more */
  write(exitCode: number | null, json: object, chart = NOTHING): void {
    const { command, said } = this;
    this.to('json', `${JSON.stringify({ command, exitCode, ...json }, null, 2)}\n`);
    this.to('html', pageOf(`nestjs-perf-load ${command}: ${exitCode ?? 'not ended'}`, said, chart));
  }

  private to(name: 'json' | 'html', text: string): void {
    const file = this.options[name];
    if (typeof file !== 'string') return;
    try {
      writeFileSync(file, text);
    } catch (error) {
      throw new UsageError(`--${name} ${file} cannot be written: ${(error as Error).message}`, { cause: error });
    }
  }
}
