import { statSync, writeFileSync, type BigIntStats } from 'node:fs';
import { resolve } from 'node:path';
import type { Command, Given, Print } from './options.js';
import { renderPage, type Chart } from './page.js';
import { UsageError } from './usage.js';

const NOTHING: Chart = { title: 'Nothing was measured', bars: [] };

/** The JSON last: it tells the exit code, and a pipe cannot take it back. */
const FILES = ['html', 'json'] as const;

/** The report of a run, on stdout and in files. */
export class Report {
  /** The result before the end of the run. */
  private known: object = {};
  private readonly said: string[] = [];

  /** @throws UsageError where one file would overwrite another: `read` is the recording */
  constructor(
    private readonly command: Command,
    private readonly options: Given,
    read: string | undefined,
  ) {
    const { html, json } = options as Record<string, string | undefined>;
    for (const [name, file] of Object.entries({ html, json }))
      if (isSameFile(file, read)) throw new UsageError(`--${name} ${file} is the recording itself: name another file.`);
    if (isSameFile(html, json)) throw new UsageError(`--html and --json are one file, ${json}: name another one.`);
  }

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
    for (const name of FILES) {
      try {
        this.to(name, exitCode, { ...this.known, error });
      } catch (cause) {
        // That it cannot be written may be the error.
        if ((cause as Error).message !== error) console.error((cause as Error).message);
      }
    }
  }

  /** @throws UsageError where a file cannot be written any more */
  write(exitCode: number | null, json: object, chart = NOTHING): void {
    this.known = json;
    for (const name of FILES) this.to(name, exitCode, json, chart);
  }

  private to(name: (typeof FILES)[number], exitCode: number | null, json: object, chart = NOTHING): void {
    const { command, said } = this;
    const file = this.options[name];
    if (typeof file !== 'string') return;
    try {
      // A pipe or device keeps all that is written to it: it gets only the end of the run.
      if (exitCode === null && isStream(file)) return;
      const text =
        name === 'json'
          ? `${JSON.stringify({ command, exitCode, ...json }, null, 2)}\n`
          : renderPage(`nestjs-perf-load ${command}: ${exitCode ?? 'not ended'}`, said, chart);
      writeFileSync(file, text);
    } catch (error) {
      throw new UsageError(`--${name} ${file} cannot be written: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** By whatever name. A stream is given both, one after the other. */
function isSameFile(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined || isStream(one)) return false;
  const [a, b] = [readStats(one), readStats(other)];
  return a !== null && b !== null ? a.dev === b.dev && a.ino === b.ino : resolve(one) === resolve(other);
}

function isStream(file: string): boolean {
  const found = readStats(file);
  return found !== null && !found.isFile() && !found.isDirectory();
}

/** Null where there is none yet, or none that may be looked at. */
function readStats(file: string): BigIntStats | null {
  try {
    return statSync(file, { bigint: true });
  } catch {
    return null;
  }
}
