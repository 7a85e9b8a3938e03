import { Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonShape } from '../../../src/recording/json-shape.js';

describe('the shape of an answer', () => {
  it('is the same for the same fields and types, whatever their values and their order', () => {
    const shape = jsonShape({ id: 1, tags: ['a'], items: [{ a: 1 }, { a: 2 }], at: new Date() });
    expect(shape).toMatch(/^[0-9a-f]{16}$/);
    expect(jsonShape({ at: 'x', items: [{ a: 3 }], tags: ['b', 'c'], id: 2, none: undefined })).toBe(shape);
    for (const other of [
      { id: '1', tags: ['a'], items: [{ a: 1 }], at: 'x' },
      { id: 1, tags: ['a'], items: [{ b: 1 }], at: 'x' },
      { id: 1, tags: ['a', 1], items: [{ a: 1 }], at: 'x' },
      { id: 1, tags: ['a'], items: [{ a: 1 }], at: null },
    ])
      expect(jsonShape(other)).not.toBe(shape);
  });

  it('is that of its JSON, and never throws', () => {
    const json = fc.object({
      withDate: true,
      withNullPrototype: true,
      values: [fc.string(), fc.double(), fc.boolean(), fc.constant(undefined), fc.constant(null)],
    });
    fc.assert(fc.property(json, (data) => jsonShape(data) === jsonShape(JSON.parse(JSON.stringify(data)))));
    fc.assert(fc.property(fc.anything(), (data) => void jsonShape(data)));
  });

  it('is not known of what is no JSON, or says itself what its JSON is', () => {
    const throwing = {
      get name() {
        throw new Error('no');
      },
    };
    const circular: { self?: unknown } = {};
    circular.self = { circular };
    for (const other of [
      'text',
      7,
      null,
      undefined,
      Buffer.from('x'),
      new Uint8Array(9),
      Readable.from([]),
      { toJSON: () => 1 },
    ])
      expect(jsonShape(other)).toBeNull();
    expect(jsonShape(new StreamableFile(Buffer.from('x')))).toBeNull();
    expect(jsonShape(throwing)).toBeNull();
    expect(jsonShape({ big: 1n })).toBeNull();
    expect(jsonShape(circular)).toMatch(/^[0-9a-f]{16}$/);
  });
});
