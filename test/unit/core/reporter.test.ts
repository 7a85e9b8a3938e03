import { beforeEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';

let nowMs = 0;
let lines: string[] = [];
let report: OncePerCause;
beforeEach(() => {
  nowMs = 0;
  lines = [];
  report = new OncePerCause({ log: () => {}, warn: (line) => void lines.push(line), error: () => {} }, () => nowMs, 3);
});

describe('a cause', () => {
  it('is said once; the rest are counted, and said after a minute', () => {
    for (let i = 0; i < 5; i++) report.report('no disk', 'There is no disk.');
    expect(lines).toEqual(['There is no disk.']);
    nowMs = 60_000;
    report.report('no disk', 'There is no disk.');
    expect(lines.slice(1)).toEqual(['no disk: 5 more since it was last reported.']);
  });

  it('is the same one with other numbers in it: ports, durations, ids', () => {
    for (let i = 0; i < 50; i++) report.report(`timeout after ${5_000 + i} ms`, `Timeout after ${5_000 + i} ms.`);
    report.report('no disk', 'There is no disk.');
    expect(lines).toEqual(['Timeout after 5000 ms.', 'There is no disk.']);
  });

  it('that was not met for ten minutes makes room for another one', () => {
    for (const cause of ['a', 'b', 'c', 'd', 'e']) report.report(cause, `${cause} is wrong.`);
    expect(lines).toEqual(['a is wrong.', 'b is wrong.', 'c is wrong.', 'd is wrong.']);
    nowMs = 10 * 60_000;
    report.report('f', 'f is wrong.');
    expect(lines.at(-1)).toBe('f is wrong.');
  });
});
