import * as zlib from 'node:zlib';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chooseLevel,
  compressOnPool,
  compressOnLoop,
  Compressor,
  type Levels,
} from '../../../src/compression/codec.js';
import { LEVEL_LIMITS } from '../../../src/compression/compression.options.js';
import { CONTENT_CODINGS, supportedCodings } from '../../../src/compression/rules/accept-encoding.js';
import { decode } from '../../fixtures/decode.js';

const none: Levels = { zstd: null, br: null, gzip: null };
const MIB = 1024 * 1024;

describe('levels', () => {
  it('are chosen by size and by how often the body is sent', () => {
    expect(chooseLevel('zstd', 64 * 1024, 'once', none)).toBe(1);
    expect(chooseLevel('zstd', 64 * 1024 + 1, 'once', none)).toBe(3);
    expect(chooseLevel('zstd', 5 * MIB, 'once', none)).toBe(3);
    expect(chooseLevel('br', 16 * 1024, 'once', none)).toBe(3);
    expect(chooseLevel('br', 16 * 1024 + 1, 'once', none)).toBe(4);
    expect(chooseLevel('br', MIB, 'once', none)).toBe(4);
    expect(chooseLevel('br', MIB + 1, 'once', none)).toBe(3);
    expect(chooseLevel('gzip', 256 * 1024, 'once', none)).toBe(6);
    expect(chooseLevel('gzip', 256 * 1024 + 1, 'once', none)).toBe(1);
    expect(chooseLevel('deflate', MIB, 'once', none)).toBe(1);
    expect(CONTENT_CODINGS.map((coding) => chooseLevel(coding, 3 * MIB, 'shared', none))).toEqual([9, 5, 6, 6]);
    expect(CONTENT_CODINGS.map((coding) => chooseLevel(coding, 3 * MIB, 'hurried', none))).toEqual([1, 1, 1, 1]);
  });

  it('are what the application chose, except while the pool is full', () => {
    const chosen: Levels = { zstd: 5, br: 0, gzip: 7 };
    expect(CONTENT_CODINGS.map((coding) => chooseLevel(coding, MIB, 'shared', chosen))).toEqual([5, 0, 7, 7]);
    expect(CONTENT_CODINGS.map((coding) => chooseLevel(coding, MIB, 'hurried', chosen))).toEqual([1, 0, 1, 1]);
  });

  it('stay below the ceilings without anybody choosing', () => {
    for (const effort of ['once', 'shared', 'hurried'] as const) {
      for (const size of [0, 1, 10_000, MIB, 100 * MIB, Infinity]) {
        for (const coding of CONTENT_CODINGS) {
          const { safe } = LEVEL_LIMITS[coding === 'deflate' ? 'gzip' : coding];
          expect(chooseLevel(coding, size, effort, none)).toBeLessThanOrEqual(safe);
        }
      }
    }
  });
});

describe('the codec', () => {
  it('really uses the level: the output is that of zlib at that level', async () => {
    const body = Buffer.from(
      JSON.stringify(Array.from({ length: 500 }, (_, id) => ({ id, name: `flight ${id * 7919}` }))),
    );
    const lengths = new Map<number, number>();
    for (const level of [1, 4, 6]) lengths.set(level, (await compressOnPool('br', body, level)).byteLength);
    expect(new Set(lengths.values()).size).toBe(3);
    const brotli = (quality: number): number =>
      zlib.brotliCompressSync(body, {
        params: {
          [zlib.constants.BROTLI_PARAM_QUALITY]: quality,
          [zlib.constants.BROTLI_PARAM_LGWIN]: 16,
          [zlib.constants.BROTLI_PARAM_MODE]: zlib.constants.BROTLI_MODE_TEXT,
          [zlib.constants.BROTLI_PARAM_SIZE_HINT]: body.byteLength,
        },
      }).byteLength;
    for (const [level, length] of lengths) expect(length).toBe(brotli(level));
    expect((await compressOnPool('gzip', body, 1)).equals(zlib.gzipSync(body, { level: 1 }))).toBe(true);
  });

  it('gives back every body, whatever the coding, the level and the way it was compressed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...supportedCodings),
        fc.oneof(
          fc.uint8Array({ maxLength: 5_000 }),
          fc.json({ depthSize: 'large' }).map((json) => Buffer.from(json)),
        ),
        fc.integer({ min: 1, max: 7 }),
        async (coding, body, level) => {
          expect(decode(coding, compressOnLoop(coding, body, level)).equals(body)).toBe(true);
          expect(decode(coding, await compressOnPool(coding, body, level)).equals(body)).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each(supportedCodings)('streams %s', async (coding) => {
    const parts = Array.from({ length: 100 }, (_, i) => `line ${i}\n`.repeat(i));
    const chunks: Buffer[] = [];
    for await (const chunk of Readable.from(parts).pipe(new Compressor(none).openEncoder(coding)))
      chunks.push(chunk as Buffer);
    expect(decode(coding, Buffer.concat(chunks)).toString()).toBe(parts.join(''));
  });
});
