import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { nodeBinaries } from '../../fixtures/node-versions.js';

const ENDS = process.env['PERF_LONG'] === undefined ? 2 : 20;
const AT_ONCE = Math.min(ENDS, 4);
const file = fileURLToPath(new URL('../../../build/test/fixtures/sampled.process.js', import.meta.url));

interface End {
  readonly code: number | string | null;
  readonly signal: string | null;
  readonly stderr: string;
}

const endOf = (execPath: string, how: string): Promise<End> =>
  new Promise((resolve) => {
    const child = execFile(execPath, [file, how], { timeout: 50_000 }, (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode, signal: child.signalCode, stderr }),
    );
  });

// An inspector session that is connected while a process ends would make Node write that it waits for the debugger.
describe.each(nodeBinaries())('a process that is sampled 200 times a second on $name', ({ execPath }) => {
  it.each<[how: string, what: string, end: Omit<End, 'stderr'>]>([
    ['exit', 'process.exit()', { code: 7, signal: null }],
    ['error', 'an uncaught error', { code: 1, signal: null }],
    ['term', 'SIGTERM without a handler', { code: null, signal: 'SIGTERM' }],
    ['end', 'nothing left to do', { code: 0, signal: null }],
  ])(
    'ends by %s as it would without, and writes nothing: %s',
    async (how, _what, expected) => {
      for (let left = ENDS; left > 0; left -= AT_ONCE) {
        for (const { stderr, ...end } of await Promise.all(
          Array.from({ length: AT_ONCE }, () => endOf(execPath, how)),
        )) {
          expect(end).toEqual(expected);
          // Beside the error itself.
          expect(stderr.replace(/^[^]*Error: on purpose\n(?: {4}at .*\n)*\nNode\.js v[\d.]+\n$/, '')).toBe('');
        }
      }
    },
    120_000,
  );
});
