import { describe, expect, it } from 'vitest';
import { installSafepoints } from '../../../src/event-loop/safepoints.js';

describe('safepoints', () => {
  it('keep what the functions do', () => {
    const restore = installSafepoints();
    const value = { a: [1, 'ä', null], nested: { b: true } };
    expect(JSON.parse(JSON.stringify(value))).toEqual(value);
    expect(JSON.parse('[1,2]', (_key, v: unknown) => (typeof v === 'number' ? v + 1 : v))).toEqual([2, 3]);
    expect(JSON.stringify({ a: 1 }, null, 2)).toBe('{\n  "a": 1\n}');
    expect(JSON.stringify(undefined)).toBeUndefined();
    expect(structuredClone(new Map([[1, new Date(0)]]))).toEqual(new Map([[1, new Date(0)]]));
    expect(() => JSON.parse('{')).toThrow(SyntaxError);
    expect([JSON.parse.name, JSON.parse.length, JSON.stringify.length]).toEqual(['parse', 2, 3]);
    restore();
  });

  it('are one wrap for many applications, and gone with the last', () => {
    const { parse, stringify } = JSON;
    const clone = structuredClone;
    const first = installSafepoints();
    const wrapped = JSON.parse;
    const second = installSafepoints();
    expect(JSON.parse).toBe(wrapped);
    first();
    first();
    expect(JSON.parse).toBe(wrapped);
    second();
    expect(JSON.parse).toBe(parse);
    expect(JSON.stringify).toBe(stringify);
    expect(structuredClone).toBe(clone);
  });

  it('leave alone what somebody else has wrapped meanwhile', () => {
    const { parse } = JSON;
    const restore = installSafepoints();
    const ours = JSON.parse;
    const theirs: typeof JSON.parse = (text) => ours(text) as unknown;
    JSON.parse = theirs;
    restore();
    expect(JSON.parse).toBe(theirs);
    JSON.parse = parse;
  });
});
