import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Compressor, type Encoded } from '../../../src/compression/codec.js';
import { ContentCache, type CachedBody } from '../../../src/compression/content-cache.js';
import { decode } from '../../fixtures/decode.js';

const none = { zstd: null, br: null, gzip: null };
const MIB = 1024 * 1024;
const text = (seed: number, length: number): string =>
  `${seed} `.repeat(Math.ceil(length / `${seed} `.length)).slice(0, length);

/** Counts what is compressed and lets a test fail it. */
class CountingCompressor extends Compressor {
  runs = 0;
  fails = false;

  constructor() {
    super(none, 1);
  }

  override encode(...given: Parameters<Compressor['encode']>): Encoded {
    this.runs += 1;
    return this.fails ? Promise.reject(new Error('out of memory')) : super.encode(...given);
  }
}

describe('the content cache', () => {
  it('finds a body by what it is, never by a hash or a length alone', () => {
    const cache = new ContentCache(MIB);
    const body = 'a'.repeat(5_000);
    const entry = cache.addRepeated(body);
    expect(cache.find('a'.repeat(2_500) + 'a'.repeat(2_500))).toBe(entry);
    // Differs at one place only, and not where samples are compared.
    expect(cache.find(`${'a'.repeat(4_997)}baa`)).toBeNull();
    expect(cache.find(Buffer.from(body))).toBeNull();
  });

  it('never returns another body, for random bodies of few lengths and letters', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 6 }), { maxLength: 60 }),
        (bodies) => {
          const cache = new ContentCache(MIB);
          for (const body of bodies) {
            const found = cache.find(body) ?? cache.addRepeated(body)!;
            expect(found.source).toBe(body);
          }
        },
      ),
    );
  });

  it('keeps its own copy of a buffer, so that writing into it afterwards changes nothing', () => {
    const cache = new ContentCache(MIB);
    const buffer = Buffer.from('a'.repeat(2_000));
    const entry = cache.addRepeated(buffer)!;
    buffer.fill('b');
    expect(cache.find(buffer)).toBeNull();
    expect(Buffer.from(entry.source as Uint8Array).toString()).toBe('a'.repeat(2_000));
  });

  it('holds the memory that it counts, of small bodies too: bodies and encodings have buffers of their own', async () => {
    const cache = new ContentCache(MIB);
    const entry = cache.addRepeated(Buffer.from(text(7, 1_500)))!;
    const encoded = await entry.encode('gzip', new Compressor(none, 1), false);
    for (const bytes of [entry.source as Buffer, encoded!]) expect(bytes.buffer.byteLength).toBe(bytes.length);
  });

  it('stays within its bytes under 10 000 bodies, encodings included', async () => {
    const cache = new ContentCache(MIB);
    const compressor = new CountingCompressor();
    let most = 0;
    for (let i = 0; i < 10_000; i++) {
      const entry = cache.addRepeated(text(i, 2_000 + (i % 500)));
      if (entry !== null && i % 10 === 0) await entry.encode('gzip', compressor, false);
      most = Math.max(most, cache.bytes);
    }
    expect(most).toBeLessThanOrEqual(MIB);
    expect(cache.bytes).toBeGreaterThan(MIB / 2);
    cache.clear();
    expect(cache.bytes).toBe(0);
  });

  it('evicts what was used longest ago', () => {
    const cache = new ContentCache(10 * 4_700);
    const [first, second, third, ...more] = Array.from({ length: 11 }, (_, seed) => text(seed, 3_500 + seed));
    for (const body of [first!, second!, third!]) cache.addRepeated(body);
    cache.find(first!);
    for (const body of more) cache.addRepeated(body);
    expect(cache.find(first!)).not.toBeNull();
    expect(cache.find(second!)).toBeNull();
    expect(cache.find(third!)).not.toBeNull();
  });

  it('keeps few bodies of one length, the newest', () => {
    const cache = new ContentCache(MIB);
    const bodies = Array.from({ length: 9 }, (_, seed) => text(seed + 10, 2_000));
    for (const body of bodies) cache.addRepeated(body);
    expect(bodies.map((body) => cache.find(body) !== null)).toEqual([false, ...bodies.slice(1).map(() => true)]);
  });

  it('knows which bodies have come before, of some hundred', () => {
    const cache = new ContentCache(MIB);
    const tags = Array.from({ length: 100 }, (_, id) => `"${id}"`);
    expect(tags.some((tag) => cache.hasSeen(tag))).toBe(false);
    expect(tags.filter((tag) => cache.hasSeen(tag)).length).toBeGreaterThan(80);
    expect(cache.bytes).toBe(0);
  });

  it('counts what is kept beside a body, and says when that has gone', () => {
    const cache = new ContentCache(20_000);
    const gone: unknown[] = [];
    const kept = cache.addShared('x', 5_000, (entry) => gone.push(entry))!;
    expect(cache.bytes).toBeGreaterThan(6_000);
    expect(cache.find('x')).toBeNull();
    cache.evict(kept);
    expect([gone, cache.bytes]).toEqual([[kept], 0]);
    cache.addShared('x', 25_000, (entry) => gone.push(entry));
    expect([gone.length, cache.bytes]).toEqual([2, 0]);
  });

  it('takes in no body of more than a tenth of it, and no shared one of more than half of it', () => {
    const cache = new ContentCache(100_000);
    expect(cache.addRepeated('x'.repeat(10_000))).toBeNull();
    expect(cache.addRepeated('x'.repeat(8_000))).not.toBeNull();
    expect(cache.addShared('x'.repeat(50_000), 0, () => {})).toBeNull();
    expect(cache.addShared('x'.repeat(48_000), 0, () => {})).not.toBeNull();
  });

  it('counts two bytes for each character of a text beyond Latin-1', () => {
    const cache = new ContentCache(MIB);
    const [plain, cyrillic] = ['x', '\u0436'].map((character) => cache.addRepeated(character.repeat(5_000))!);
    expect(cyrillic!.bytes - plain!.bytes).toBe(5_000);
    expect(cyrillic!.byteLength).toBe(10_000);
  });

  it('charges nothing for what is evicted while it is compressed', async () => {
    const cache = new ContentCache(100_000);
    const busy = cache.addShared(text(1, 48_000), 0, () => {})!;
    const pending = busy.encode('br', new CountingCompressor(), false);
    expect(pending).toBeInstanceOf(Promise);
    const others = [2, 3].map((seed) => cache.addShared(text(seed, 48_000), 0, () => {})!);
    expect(decode('br', (await pending)!).toString()).toBe(busy.source);
    expect(cache.bytes).toBe(others[0]!.bytes + others[1]!.bytes);
  });
});

describe('a cached body', () => {
  const getOrAdd = (length: number): CachedBody => new ContentCache(MIB).addRepeated(text(7, length))!;

  it('is encoded once for 50 requests that come together', async () => {
    const compressor = new CountingCompressor();
    const entry = getOrAdd(50_000);
    const all = await Promise.all(Array.from({ length: 50 }, async () => entry.encode('gzip', compressor, true)));
    expect(compressor.runs).toBe(1);
    expect(new Set(all).size).toBe(1);
    expect(decode('gzip', all[0]!).toString()).toBe(entry.source);
    expect(entry.codings).toEqual(['gzip']);
  });

  it('tries again after the compressor has failed', async () => {
    const compressor = new CountingCompressor();
    const entry = getOrAdd(50_000);
    compressor.fails = true;
    await expect(entry.encode('gzip', compressor, false)).rejects.toThrow('out of memory');
    compressor.fails = false;
    expect(decode('gzip', (await entry.encode('gzip', compressor, false))!).toString()).toBe(entry.source);
  });

  it('is null where encoding would make it larger', () => {
    const compressor = new CountingCompressor();
    const noise = new ContentCache(MIB).addRepeated(crypto.getRandomValues(new Uint8Array(9_000)))!;
    expect(noise.encode('gzip', compressor, false)).toBeNull();
  });
});
