import { describe, expect, it, vi } from 'vitest';
import { ContentCache } from '../../../../src/compression/cache/content-cache.js';
import { KnownValue } from '../../../../src/compression/cache/known-value.js';
import { RepeatedBody } from '../../../../src/compression/cache/repeated-body.js';

const rows = (version: number, count = 5_000) => ({
  version,
  rows: Array.from({ length: count }, (_, id) => ({ id })),
});

function setUp(maxBytes = 16 * 1024 * 1024) {
  const cache = new ContentCache(maxBytes);
  const repeated = new RepeatedBody();
  const serialise = vi.fn<(value: unknown) => string>((value) => JSON.stringify(value));
  const textOf = (value: unknown): string => {
    const found = repeated.find(value);
    if (found !== null) return found.source as string;
    const text = serialise(value);
    repeated.serialised(value, text);
    return text;
  };
  /** One response, as the engine and the adapter make it. */
  const respond = (value: unknown): string => {
    const text = textOf(value);
    const known = cache.find(text);
    if (known === null) cache.add(text);
    else repeated.repeated(known);
    return text;
  };
  return { cache, repeated, serialise, respond };
}

describe('a repeated body', () => {
  it('is serialised until it is known, then no more', () => {
    const { serialise, respond } = setUp();
    for (let i = 0; i < 20; i++) expect(respond(rows(1))).toBe(JSON.stringify(rows(1)));
    expect(serialise).toHaveBeenCalledTimes(3);
  });

  it('is told again after every change in place', () => {
    const { respond } = setUp();
    const value = rows(1);
    for (let i = 0; i < 40; i++) {
      if (i % 5 === 0) value.rows[4_999]!.id += 1;
      expect(respond(value)).toBe(JSON.stringify(value));
    }
  });

  it('is left alone where it is small', () => {
    const { repeated, respond } = setUp();
    for (let i = 0; i < 5; i++) respond(rows(1, 10));
    expect(repeated.active).toBe(false);
  });

  it('survives small answers in between', () => {
    const { serialise, respond } = setUp();
    for (let i = 0; i < 5; i++) respond(rows(1));
    serialise.mockClear();
    respond({ statusCode: 404 });
    respond(rows(1));
    expect(serialise).toHaveBeenCalledTimes(1);
  });

  it('is recorded ever less often where values take turns', () => {
    const { cache, respond } = setUp();
    let recorded = 0;
    let before = 0;
    for (let i = 0; i < 400; i++) {
      respond(rows(i % 2));
      if (cache.bytes > before && i > 2) recorded += 1;
      before = cache.bytes;
    }
    expect(recorded).toBeLessThan(12);
  });

  it('is tried ever less often where values cannot be compared', () => {
    const { respond } = setUp();
    const recording = vi.spyOn(KnownValue, 'of');
    for (let i = 0; i < 400; i++) respond({ ...rows(1), at: { toJSON: () => 'never compared' } });
    expect(recording.mock.calls.length).toBeGreaterThan(3);
    expect(recording.mock.calls.length).toBeLessThan(12);
    recording.mockRestore();
  });

  it('counts against the cache, and goes with the entry', () => {
    const { cache, repeated, respond } = setUp();
    respond(rows(1));
    const text = cache.bytes;
    for (let i = 0; i < 5; i++) respond(rows(1));
    expect(cache.bytes).toBeGreaterThan(text * 1.5);
    cache.clear();
    expect(cache.bytes).toBe(0);
    expect(respond(rows(1))).toBe(JSON.stringify(rows(1)));
    expect(repeated.active).toBe(false);
  });

  it('is not recorded where it would fill the cache', () => {
    const { cache, respond } = setUp(400_000);
    for (let i = 0; i < 10; i++) respond(rows(1));
    expect(cache.bytes).toBeLessThan(100_000);
  });

  it('is serialised where a getter throws, so that the error is met where it is expected', () => {
    const { respond } = setUp();
    const value = rows(1);
    for (let i = 0; i < 5; i++) respond(value);
    Object.defineProperty(value, 'version', {
      enumerable: true,
      get: () => {
        throw new Error('broken getter');
      },
    });
    expect(() => respond(value)).toThrow('broken getter');
  });

  it('may be nothing at all', () => {
    const { repeated, respond } = setUp();
    for (let i = 0; i < 5; i++) respond(rows(1));
    expect(repeated.find(undefined)).toBeNull();
    repeated.serialised(undefined, undefined);
    expect(repeated.find(rows(1))?.source).toBe(JSON.stringify(rows(1)));
  });

  it('is not held where the cache has let it go', async () => {
    const { cache, repeated, respond } = setUp();
    for (let i = 0; i < 5; i++) respond(rows(1));
    const held = new WeakRef(repeated.find(rows(1))!);
    cache.clear();
    // A weak reference holds until the turn is over.
    await new Promise((resolve) => void setImmediate(resolve));
    globalThis.gc!();
    expect(held.deref()).toBeUndefined();
  });

  it('is charged once where two routes give the same text from different values', () => {
    const { cache, repeated, respond } = setUp();
    class Row {
      constructor(readonly id: number) {}
    }
    const entities = { version: 1, rows: rows(1).rows.map(({ id }) => new Row(id)) };
    const other = new RepeatedBody();
    for (let i = 0; i < 5; i++) respond(rows(1));
    const { bytes } = cache;
    for (let i = 0; i < 12; i++) {
      other.repeated(cache.find(JSON.stringify(entities))!);
      for (const [route, value] of [
        [other, entities],
        [repeated, rows(1)],
      ] as const) {
        if (route.find(value) === null) route.serialised(value, JSON.stringify(value));
      }
    }
    expect(cache.bytes).toBe(bytes);
  });

  it('is not recorded while a getter tells the time', () => {
    const { respond } = setUp();
    let now = 0;
    const value = rows(1);
    Object.defineProperty(value, 'version', { enumerable: true, get: () => Math.floor((now += 1) / 7) });
    for (let i = 0; i < 60; i++) {
      const text = respond(value);
      const version = Number(/"version":(\d+)/.exec(text)![1]);
      // What it told at some moment of this response.
      expect([Math.floor(now / 7), Math.floor((now - 1) / 7), Math.floor((now - 2) / 7)]).toContain(version);
    }
  });
});
