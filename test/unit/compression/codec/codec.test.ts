import * as zlib from 'node:zlib';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { compress, compressNow, compressStream } from '../../../../src/compression/codec/codec.js';
import { CONTENT_CODINGS, supportedCodings } from '../../../../src/compression/rules/accept-encoding.js';
import { LEVEL_LIMITS, levelFor, type Levels } from '../../../../src/compression/codec/compressor.js';
import { decode } from '../../../fixtures/decode.js';

const none: Levels = { zstd: null, br: null, gzip: null };
const MIB = 1024 * 1024;

describe('levels', () => {
  it('are chosen by size and by how often the body is sent', () => {
    expect(levelFor('zstd', 5 * MIB, 'once', none)).toBe(3);
    expect(levelFor('br', MIB, 'once', none)).toBe(4);
    expect(levelFor('br', MIB + 1, 'once', none)).toBe(3);
    expect(levelFor('gzip', 256 * 1024, 'once', none)).toBe(6);
    expect(levelFor('gzip', 256 * 1024 + 1, 'once', none)).toBe(1);
    expect(levelFor('deflate', MIB, 'once', none)).toBe(1);
    expect(CONTENT_CODINGS.map((coding) => levelFor(coding, 3 * MIB, 'shared', none))).toEqual([9, 5, 6, 6]);
    expect(CONTENT_CODINGS.map((coding) => levelFor(coding, 3 * MIB, 'hurried', none))).toEqual([1, 1, 1, 1]);
  });

  it('are what the application chose, except while the pool is full', () => {
    const chosen: Levels = { zstd: 5, br: 0, gzip: 7 };
    expect(CONTENT_CODINGS.map((coding) => levelFor(coding, MIB, 'shared', chosen))).toEqual([5, 0, 7, 7]);
    expect(CONTENT_CODINGS.map((coding) => levelFor(coding, MIB, 'hurried', chosen))).toEqual([1, 0, 1, 1]);
  });

  it('stay below the ceilings without anybody choosing', () => {
    for (const effort of ['once', 'shared', 'hurried'] as const) {
      for (const size of [0, 1, 10_000, MIB, 100 * MIB, Infinity]) {
        for (const coding of CONTENT_CODINGS) {
          const { safe } = LEVEL_LIMITS[coding === 'deflate' ? 'gzip' : coding];
          expect(levelFor(coding, size, effort, none)).toBeLessThanOrEqual(safe);
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
    for (const level of [1, 4, 6]) lengths.set(level, (await compress('br', body, level)).byteLength);
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
    expect((await compress('gzip', body, 1)).equals(zlib.gzipSync(body, { level: 1 }))).toBe(true);
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
          expect(decode(coding, compressNow(coding, body, level)).equals(body)).toBe(true);
          expect(decode(coding, await compress(coding, body, level)).equals(body)).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each(supportedCodings)('streams %s', async (coding) => {
    const parts = Array.from({ length: 100 }, (_, i) => `line ${i}\n`.repeat(i));
    const chunks: Buffer[] = [];
    for await (const chunk of Readable.from(parts).pipe(compressStream(coding, 3, () => {})))
      chunks.push(chunk as Buffer);
    expect(decode(coding, Buffer.concat(chunks)).toString()).toBe(parts.join(''));
  });

  it.each(supportedCodings)('%s does not hold back what was written before a pause', async (coding) => {
    const encoder = compressStream(coding, 3, () => {});
    encoder.write('first line\n');
    const [first] = (await new Promise((resolve) => encoder.once('data', (chunk) => resolve([chunk])))) as [Buffer];
    expect(first.byteLength).toBeGreaterThan(0);
    encoder.end('second line\n');
    const rest: Buffer[] = [first];
    for await (const chunk of encoder) rest.push(chunk as Buffer);
    expect(await text(Readable.from([decode(coding, Buffer.concat(rest))]))).toBe('first line\nsecond line\n');
  });

  it('gives what was written by a source that never pauses for long, as word by word', async () => {
    const stream = compressStream('gzip', 6, () => {});
    let isThere = false;
    stream.on('data', () => (isThere = true));
    for (let word = 0; word < 300 && !isThere; word++) {
      stream.write(`${word} `);
      await new Promise((resolve) => setTimeout(resolve, 8));
    }
    // The first bytes are gzip's own head, and come at once.
    isThere = false;
    for (let word = 0; word < 300 && !isThere; word++) {
      stream.write(`${word} `);
      await new Promise((resolve) => setTimeout(resolve, 8));
    }
    expect(isThere).toBe(true);
    stream.destroy();
  });

  it('does nothing more for a source that goes on pausing', async () => {
    const stream = compressStream('gzip', 6, () => {});
    const flush = vi.spyOn(stream as typeof stream & zlib.Zlib, 'flush');
    stream.on('data', () => {});
    stream.write('the last line');
    await new Promise((resolve) => setTimeout(resolve, 300));
    // A write that came while it was busy may cost one more.
    expect(flush.mock.calls.length).toBeLessThanOrEqual(2);
    stream.destroy();
  });

  it('gives what was written when its source pauses, also where it was busy at that moment', async () => {
    const stream = compressStream('gzip', 6, () => {});
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    for (let i = 0; i < 200; i++) stream.write(randomBytes(64 * 1024));
    stream.write('the last line');
    const options = { finishFlush: zlib.constants.Z_SYNC_FLUSH };
    await expect
      .poll(() => zlib.gunzipSync(Buffer.concat(chunks), options).subarray(-13).toString(), { interval: 200 })
      .toBe('the last line');
    stream.destroy();
  });
});
