import { availableParallelism } from 'node:os';
import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { ContentCoding } from './rules/accept-encoding.js';

export type Encoder = Transform & zlib.Zlib;

/** Functions of `node:zlib` for one coding: synchronous, on the thread pool, as a stream. */
interface Codec {
  readonly now: (body: zlib.InputType, options: object) => Buffer;
  readonly onPool: (body: zlib.InputType, options: object, done: (error: Error | null, made: Buffer) => void) => void;
  readonly stream: (options: object) => Encoder;
}
/** Node 20's types lack zstd; `supportedCodings` includes it where the runtime has it. */
interface Zstd {
  zstdCompress: Codec['onPool'];
  zstdCompressSync: Codec['now'];
  createZstdCompress: Codec['stream'];
  constants: { ZSTD_c_compressionLevel: number; ZSTD_c_hashLog: number; ZSTD_c_windowLog: number };
}
const zstd = zlib as unknown as Zstd;
const { constants } = zlib;

const CODECS: Readonly<Record<ContentCoding, Codec>> = {
  zstd: { now: zstd.zstdCompressSync, onPool: zstd.zstdCompress, stream: zstd.createZstdCompress },
  br: { now: zlib.brotliCompressSync, onPool: zlib.brotliCompress, stream: zlib.createBrotliCompress },
  gzip: { now: zlib.gzipSync, onPool: zlib.gzip, stream: zlib.createGzip },
  deflate: { now: zlib.deflateSync, onPool: zlib.deflate, stream: zlib.createDeflate },
};

/** Levels that an application has chosen; a coding without one is chosen by size. */
export type Levels = Readonly<Record<'zstd' | 'br' | 'gzip', number | null>>;

/** For one request, for many (`shared`), or for one request while the thread pool is full (`hurried`). */
export type Effort = 'once' | 'shared' | 'hurried';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Largest bodies and highest levels that are compressed on the event loop: 0.1 to 0.2 ms, less than a pool round trip costs on one core. */
const ON_LOOP = {
  zstd: { maxBytes: 64 * KIB, maxLevel: 9 },
  br: { maxBytes: 16 * KIB, maxLevel: 5 },
  gzip: { maxBytes: 16 * KIB, maxLevel: 6 },
  deflate: { maxBytes: 16 * KIB, maxLevel: 6 },
};

/**
 * The level, always explicit: zlib's own default for brotli is 11. `once` costs at most some 65 ms of CPU at 5 MB, `shared` is
 * the knee of the curve (3 MB: zstd 9 74 ms, br 5 82 ms, gzip 6 61 ms), `hurried` is the cheapest there is.
 */
export function chooseLevel(coding: ContentCoding, byteLength: number, effort: Effort, levels: Levels): number {
  const chosen = coding === 'deflate' ? levels.gzip : levels[coding];
  if (effort === 'hurried') return chosen === null ? 1 : Math.min(1, chosen);
  if (chosen !== null) return chosen;
  const shared = effort === 'shared';
  // For JSON of this size level 1 is smaller than 3, at two thirds of its CPU; other text becomes up to 6 % larger.
  if (coding === 'zstd') return shared ? 9 : byteLength <= 64 * KIB ? 1 : 3;
  if (coding !== 'br') return shared || byteLength <= 256 * KIB ? 6 : 1;
  if (shared) return 5;
  // Level 3 takes half of level 4's CPU for 0.4 to 5.7 % more bytes: small bodies are compressed on the event loop.
  return byteLength <= ON_LOOP.br.maxBytes || byteLength > MIB ? 3 : 4;
}

/** Each chunk costs a round trip to the pool: 64 KiB instead of zlib's 16 cuts the event loop's share of a 3 MB body to a quarter. */
const CHUNK_BYTES = 64 * KIB;

/** Smallest brotli window around the body: set-up and memory grow with the window. */
const chooseWindow = (byteLength: number): number =>
  Math.min(Math.max(Math.ceil(Math.log2(Math.max(byteLength, 1))), 16), 22);

/** `byteLength` null: a stream, whose length is unknown. `expectedBytes`: of the encoded body. */
function chooseOptions(
  coding: ContentCoding,
  level: number,
  byteLength: number | null,
  expectedBytes = byteLength ?? MIB,
): object {
  const length = byteLength ?? MIB;
  const chunkSize = Math.min(CHUNK_BYTES, Math.max(KIB, expectedBytes));
  if (coding === 'br') {
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: level,
      [constants.BROTLI_PARAM_LGWIN]: chooseWindow(length),
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: length,
    };
    return { chunkSize, params };
  }
  if (coding !== 'zstd') return { chunkSize, level };
  const { ZSTD_c_compressionLevel, ZSTD_c_hashLog, ZSTD_c_windowLog } = zstd.constants;
  const params = { [ZSTD_c_compressionLevel]: level };
  // Up to level 18 the window is smaller than the 8 MB (2 to the 23rd) that RFC 9659 allows.
  if (level > 18) params[ZSTD_c_windowLog] = 23;
  // The table that zstd itself takes for larger bodies: a quarter of the memory to clear, and to collect, for each body.
  if (level === 1 && length <= 16 * KIB) params[ZSTD_c_hashLog] = 13;
  return { chunkSize, params };
}

/** Its chunks are small, since a further one costs no round trip: below 4 KiB Node takes them from its own pool of memory. */
export function compressOnLoop(coding: ContentCoding, body: Uint8Array, level: number): Buffer {
  const { byteLength } = body;
  return CODECS[coding].now(body, chooseOptions(coding, level, byteLength, byteLength >> 2));
}

export function compressOnPool(coding: ContentCoding, body: Uint8Array, level: number): Promise<Buffer> {
  return promisify(CODECS[coding].onPool)(body, chooseOptions(coding, level, body.byteLength));
}

/**
 * How many compressions may occupy the thread pool: one thread always stays free for files, DNS and crypto, and more
 * than there are cores would only queue inside the kernel.
 */
export function countSlots(
  threadPoolSize = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4),
  cores = availableParallelism(),
): number {
  return Math.max(1, Math.min(threadPoolSize - 1, cores) || 1);
}

/** A body in a coding, null where it would not be smaller; or the promise of it. */
export type Encoded = Buffer | null | Promise<Buffer | null>;

/**
 * Compresses whole bodies: small ones on the event loop, others on the thread pool in order of arrival, `slots` at a time. Without that
 * limit 20 bodies of 3 MB delay each `fs.stat` of the process by 30 ms: both need the pool.
 */
export class Compressor {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly levels: Levels,
    private readonly slots = countSlots(),
  ) {}

  /**
   * Null where the encoded body would not be smaller. With the pool full the body waits, and gets the cheapest level; none when
   * `wanted` returns false by then: its client has gone.
   */
  encode(coding: ContentCoding, body: Uint8Array, effort: Effort, wanted: () => boolean = () => true): Encoded {
    const level = chooseLevel(coding, body.byteLength, effort, this.levels);
    const { maxBytes, maxLevel } = ON_LOOP[coding];
    if (body.byteLength <= maxBytes && level <= maxLevel) {
      return keepSmaller(compressOnLoop(coding, body, level), body);
    }
    return this.encodeOnPool(coding, body, this.hurry(effort), wanted);
  }

  /** Takes no slot: a stream to a slow client would occupy it for as long as it lasts. */
  openEncoder(coding: ContentCoding): Encoder {
    const level = chooseLevel(coding, Number.POSITIVE_INFINITY, this.hurry('once'), this.levels);
    return CODECS[coding].stream(chooseOptions(coding, level, null));
  }

  private get isFull(): boolean {
    return this.running >= this.slots;
  }

  private hurry(effort: Effort): Effort {
    return this.isFull ? 'hurried' : effort;
  }

  private async encodeOnPool(
    coding: ContentCoding,
    body: Uint8Array,
    effort: Effort,
    wanted: () => boolean,
  ): Promise<Buffer | null> {
    if (this.isFull) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      if (!wanted()) return null;
      const level = chooseLevel(coding, body.byteLength, effort, this.levels);
      return keepSmaller(await compressOnPool(coding, body, level), body);
    } finally {
      // The next in line gets the slot directly: a newcomer cannot take it first.
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }
}

const keepSmaller = (encoded: Buffer, body: Uint8Array): Buffer | null =>
  encoded.byteLength < body.byteLength ? encoded : null;
