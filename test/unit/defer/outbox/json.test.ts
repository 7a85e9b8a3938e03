import { describe, expect, it } from 'vitest';
import { fromJson, toJson } from '../../../../src/defer/durable/entry.js';
import { PerfError } from '../../../../src/core/perf.error.js';

describe('data that leaves the process', () => {
  it('is taken as it is when it is armed: later changes do not travel', () => {
    const data = { id: 1, tags: ['a'] };
    const json = toJson(data, 'a job');
    data.tags.push('b');
    expect(fromJson(json)).toEqual({ id: 1, tags: ['a'] });
  });

  it('may be undefined, null, or any JSON', () => {
    for (const data of [undefined, null, 0, '', 'x', true, [], { a: [null] }]) {
      expect(fromJson(toJson(data, 'a job'))).toEqual(data);
    }
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  it.each([
    ['a circle', circular, /cannot be serialised: Converting circular structure to JSON/],
    ['a bigint', { id: 1n }, /cannot be serialised: Do not know how to serialize a BigInt/],
    ['a function', () => {}, /cannot be serialised: it is a function/],
    ['a symbol', Symbol('x'), /cannot be serialised: it is a symbol/],
    [
      'a toJSON that throws',
      {
        toJSON() {
          throw new Error('detached entity');
        },
      },
      /cannot be serialised: detached entity/,
    ],
  ])('is refused where it is armed: %s', (_, data, message) => {
    const attempt = (): unknown => toJson(data, 'job "send" for queue "mail"');
    expect(attempt).toThrow(PerfError);
    expect(attempt).toThrow('PERF_ERR_SERIALIZE: the data of job "send" for queue "mail" must be JSON');
    expect(attempt).toThrow(message);
  });
});
