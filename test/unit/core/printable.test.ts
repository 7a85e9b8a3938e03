import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable } from '../../../src/core/printable.js';

describe('printable text', () => {
  it('is one line that no terminal obeys, whatever came in', () => {
    // Not fast-check's own binary strings, which take seconds to set up.
    const text = fc.array(fc.nat(0x20ff), { maxLength: 200 }).map((codes) => String.fromCharCode(...codes));
    fc.assert(
      fc.property(text, (text) => {
        // oxlint-disable-next-line no-control-regex
        expect(printable(text, 500)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
      }),
    );
    expect(printable('a\r\n\u001b[31m\u009b0m\u2028b', 100)).toBe('a\\u000d\\u000a\\u001b[31m\\u009b0m\\u2028b');
  });

  it('means the same inside JSON text', () => {
    const data = { note: 'line\u2028\u009bbreak ä€😀' };
    expect(JSON.parse(printable(JSON.stringify(data), 1_000))).toEqual(data);
  });

  it('is cut, and says so', () => {
    expect(printable('x'.repeat(30), 20)).toBe(`${'x'.repeat(20)}…`);
    expect(printable('x'.repeat(20), 20)).toBe('x'.repeat(20));
  });
});
