import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { nodeBinaries } from '../fixtures/node-versions.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const [SECONDS, REGEX_BLOCKS] = LONG ? [60, 1_500] : [3, 40];
const file = fileURLToPath(new URL('../../build/test/fixtures/hostile.process.js', import.meta.url));

describe.each(nodeBinaries())('samples of hostile code every few milliseconds on $name', ({ execPath }) => {
  it('crash nothing, run nothing early and never see another’s context', async () => {
    const run = promisify(execFile)(execPath, [file, String(SECONDS), String(REGEX_BLOCKS)], {
      timeout: SECONDS * 10_000 + 120_000,
    });
    // A crash would reject: the process has no exit code then.
    const result = JSON.parse((await run).stdout) as Record<string, number | string[]>;
    expect(result).toMatchObject({ early: 0, wrongStores: 0, complaints: [] });
    // Where a sample finds no room at all, the inspector describes its own RangeError, and that formats a stack.
    const others = (result['formattedOthers'] as string[]).filter(
      (text) => !/^RangeError: Maximum call stack size exceeded in (?:noRoom|overflow) /.test(text),
    );
    expect(others).toEqual([]);
    // How often a sample meets the end of the stack depends on the machine: seen in up to 1 of 200.
    expect((result['formattedOthers'] as string[]).length).toBeLessThan(Number(result['samples']) / 50);
    expect(result['samples']).toBeGreaterThan(SECONDS * 20);
    expect(result['blocks']).toBeGreaterThanOrEqual(REGEX_BLOCKS);
  }, 900_000);
});
