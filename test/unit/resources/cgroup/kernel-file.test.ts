import { describe, expect, it } from 'vitest';
import { parseCpuMax, parseThrottling, parseUsage } from '../../../../src/resources/cgroup/cpu.js';
import {
  exactCount,
  firstNumber,
  lineNumber,
  parsePressure,
  parseRunQueueMs,
  secondNumber,
  seconds,
} from '../../../../src/resources/cgroup/kernel-file.js';
import { parseMemoryStat } from '../../../../src/resources/cgroup/memory.js';
import { countCpus, parseMeminfo } from '../../../../src/resources/machine.js';

describe('numbers in kernel files', () => {
  it.each([
    ['42\n', 42],
    ['42', 42],
    ['-1\n', -1],
    ['50000 100000\n', 50_000],
    ['9223372036854771712\n', 9_223_372_036_854_771_712],
    ['9223372036854775808\n', null],
    ['9'.repeat(400), null],
    ['max 100000\n', null],
    ['12abc\n', null],
    ['1e9\n', null],
    ['-\n', null],
    ['', null],
    ['\n', null],
  ])('%j starts with %s', (text, expected) => {
    expect(firstNumber(text)).toBe(expected);
  });

  it.each([
    ['50000 100000\n', 100_000],
    ['4021000000 25000000 1204\n', 25_000_000],
    ['50000\n', null],
    ['50000 \n', null],
  ])('%j goes on with %s', (text, expected) => {
    expect(secondNumber(text)).toBe(expected);
  });

  it('finds whole keys at the start of a line only', () => {
    const text = 'inactive_anon 1\nactive_anon 2\nanon 3\nanon_thp 4\nfile 5';
    expect(['anon', 'inactive_anon', 'file', 'fil', 'absent'].map((key) => lineNumber(text, key))).toEqual([
      3,
      1,
      5,
      null,
      null,
    ]);
    expect(lineNumber('anon x\n', 'anon')).toBeNull();
  });

  it('takes for a count only what a double holds exactly', () => {
    expect(exactCount(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
    for (const none of [null, -1, 2 ** 53, 2 ** 62]) expect(exactCount(none)).toBeNull();
    expect(seconds(-1, 1e9)).toBeNull();
    expect(seconds(1_500_000_000, 1e9)).toBe(1.5);
  });
});

describe('the text of', () => {
  it.each([
    ['50000 100000\n', 0.5],
    ['150000\n', 1.5],
    ['max 100000\n', null],
    ['0 100000\n', null],
    ['50000 0\n', null],
    ['', null],
  ])('cpu.max %j is a quota of %s cores', (text, cores) => {
    expect(parseCpuMax(text)).toBe(cores);
  });

  it('cpu.stat holds usage in microseconds, and throttled time in those of its version', () => {
    const v2 =
      'usage_usec 8000000\nuser_usec 6000000\nsystem_usec 2000000\nnr_periods 9\nnr_throttled 3\nthrottled_usec 500000\n';
    expect(parseUsage(v2)).toEqual({ usageSeconds: 8, userSeconds: 6, systemSeconds: 2 });
    expect(parseThrottling(v2, 'v2')).toEqual({ periods: 9, throttledPeriods: 3, throttledSeconds: 0.5 });
    const v1 = 'nr_periods 9\nnr_throttled 3\nthrottled_time 500000000\n';
    expect(parseThrottling(v1, 'v1')).toEqual({ periods: 9, throttledPeriods: 3, throttledSeconds: 0.5 });
    expect(parseThrottling('', 'v2')).toEqual({ periods: null, throttledPeriods: null, throttledSeconds: null });
  });

  it('memory.stat tells the working set, and kernel memory by its parts on older kernels', () => {
    const older = 'anon 40\nfile 30\ninactive_file 10\nslab 1\nkernel_stack 2\npercpu 4\n';
    const figures = { workingSetBytes: 90, anonBytes: 40, fileBytes: 30, kernelBytes: 7 };
    expect(parseMemoryStat(older, 100, 'v2')).toEqual(figures);
    expect(parseMemoryStat(`${older}kernel 8\n`, 100, 'v2')).toEqual({ ...figures, kernelBytes: 8 });
    expect(parseMemoryStat(older, 5, 'v2').workingSetBytes).toBe(0);
    const nothing = { workingSetBytes: null, anonBytes: null, fileBytes: null, kernelBytes: null };
    expect(parseMemoryStat('', 100, 'v1')).toEqual(nothing);
  });

  it('pressure, schedstat and meminfo', () => {
    const text =
      'some avg10=0.00 avg60=0.12 avg300=0.08 total=7000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n';
    expect([parsePressure(text, 'some'), parsePressure(text, 'full'), parsePressure('', 'some')]).toEqual([
      7,
      3e-6,
      null,
    ]);
    expect(parseRunQueueMs('4021000000 25000000 1204\n')).toBe(25);
    const meminfo = 'MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   24355700 kB\n';
    expect(parseMeminfo(meminfo, 'MemTotal')).toBe(24_684_084 * 1024);
    expect(parseMeminfo(meminfo, 'MemAvailable')).toBe(24_355_700 * 1024);
    expect(parseMeminfo('MemTotal: x kB', 'MemTotal')).toBeNull();
  });

  it.each([
    ['0-3,8,10-11', 7],
    ['0', 1],
    ['', null],
    ['3-0', null],
    ['0-', null],
    ['a', null],
  ])('the CPU list %j has %s', (list, expected) => {
    expect(countCpus(list)).toBe(expected);
  });
});
