import { describe, expect, it } from 'vitest';
import {
  exactCount,
  firstNumber,
  lineNumber,
  numberAfter,
  onlyNumber,
  secondNumber,
  seconds,
} from '../../../../src/resources/kernel/kernel-text.js';
import { countCpus } from '../../../../src/resources/kernel/machine.js';

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
    ['42\n', 42],
    ['42', 42],
    ['-1\n', -1],
    ['9223372036854771712\n', 9_223_372_036_854_771_712],
    ['9223372036854775808\n', null],
    ['max\n', null],
    ['12 34\n', null],
    ['-\n', null],
    ['\n', null],
    ['', null],
  ])('%j as a whole is %s', (text, expected) => {
    // What the last, longer file has left in the buffer does not count.
    expect(onlyNumber(Buffer.from(`${text}99`), text.length)).toBe(expected);
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
    expect(lineNumber(text, 'anon')).toBe(3);
    expect(lineNumber(text, 'inactive_anon')).toBe(1);
    expect(lineNumber(text, 'file')).toBe(5);
    expect(lineNumber(text, 'fil')).toBeNull();
    expect(lineNumber('anon x\n', 'anon')).toBeNull();
  });

  it('skips the spaces that align a column', () => {
    expect(numberAfter('MemTotal:       24684084 kB\nMemAvailable:   24355700 kB\n', 'MemAvailable:')).toBe(24_355_700);
    expect(numberAfter('some avg10=0.00 total=7\nfull avg10=0.00 total=3\n', 'total=', 24)).toBe(3);
    expect(numberAfter('', 'total=')).toBeNull();
  });

  it('takes for a count only what a double holds exactly', () => {
    expect(exactCount(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
    for (const none of [null, -1, 2 ** 53, 2 ** 62]) expect(exactCount(none)).toBeNull();
    expect(seconds(-1, 1e9)).toBeNull();
    expect(seconds(1_500_000_000, 1e9)).toBe(1.5);
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
