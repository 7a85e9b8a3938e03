import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { ContentCoding } from '../rules/accept-encoding.js';

/** Functions of `node:zlib` for one coding: synchronous, on the thread pool, as a stream. */
interface Codec {
  readonly now: (body: zlib.InputType, options: object) => Buffer;
  readonly onPool: (body: zlib.InputType, options: object, done: (error: Error | null, made: Buffer) => void) => void;
  readonly stream: (options: object) => Transform & zlib.Zlib;
}
/** Node 20's types lack zstd; {@link supportedCodings} includes it where the runtime has it. */
interface Zstd {
  zstdCompress: Codec['onPool'];
  zstdCompressSync: Codec['now'];
  createZstdCompress: Codec['stream'];
  constants: { ZSTD_c_compressionLevel: number; ZSTD_c_windowLog: number };
}
const zstd = zlib as unknown as Zstd;
const { constants } = zlib;

const CODECS: Readonly<Record<ContentCoding, Codec>> = {
  zstd: { now: zstd.zstdCompressSync, onPool: zstd.zstdCompress, stream: zstd.createZstdCompress },
  br: { now: zlib.brotliCompressSync, onPool: zlib.brotliCompress, stream: zlib.createBrotliCompress },
  gzip: { now: zlib.gzipSync, onPool: zlib.gzip, stream: zlib.createGzip },
  deflate: { now: zlib.deflateSync, onPool: zlib.deflate, stream: zlib.createDeflate },
};

/** One pool round trip a chunk: 64 KiB instead of zlib's 16 cuts the event loop's share of a 3 MB body to a quarter. */
const CHUNK_BYTES = 64 * 1024;

/** Smallest brotli window that holds the body: set-up and memory grow with the window. */
const brotliWindow = (byteLength: number): number =>
  Math.min(Math.max(Math.ceil(Math.log2(Math.max(byteLength, 1))), 16), 22);

function optionsFor(coding: ContentCoding, level: number, byteLength: number): object {
  const chunkSize = Math.min(CHUNK_BYTES, Math.max(1024, byteLength));
  if (coding === 'zstd') return { chunkSize, params: zstdParameters(level) };
  if (coding !== 'br') return { chunkSize, level };
  return {
    chunkSize,
    params: {
      [constants.BROTLI_PARAM_QUALITY]: level,
      [constants.BROTLI_PARAM_LGWIN]: brotliWindow(byteLength),
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: byteLength,
    },
  };
}

/** The window of levels up to 18 is smaller than the 8 MB (2 to the 23rd) that RFC 9659 allows. */
const zstdParameters = (level: number): object => ({
  [zstd.constants.ZSTD_c_compressionLevel]: level,
  ...(level > 18 ? { [zstd.constants.ZSTD_c_windowLog]: 23 } : null),
});

/** Compresses on the event loop. For small bodies only: 10 KB costs 0.08 to 0.3 ms, less than a pool round trip. */
export function compressNow(coding: ContentCoding, body: Uint8Array, level: number): Buffer {
  return CODECS[coding].now(body, optionsFor(coding, level, body.byteLength));
}

/** Compresses on the thread pool. */
export function compress(coding: ContentCoding, body: Uint8Array, level: number): Promise<Buffer> {
  return promisify(CODECS[coding].onPool)(body, optionsFor(coding, level, body.byteLength));
}

/** Length that streams count as, bytes: theirs is unknown. */
const STREAM_BYTES = 1024 * 1024;

type Tell = (bytesIn: number, bytesOut: number) => void;

/**
 * Returns a compressing stream. Written bytes reach the client within {@link LONGEST_WAIT_MS}, and within {@link IDLE_FLUSH_MS} when
 * no more follow. `tell` gets its bytes, before and after compression, at its end.
 */
export function compressStream(coding: ContentCoding, level: number, tell: Tell): Transform {
  const stream = CODECS[coding].stream(optionsFor(coding, level, STREAM_BYTES));
  return counted(flushWhenIdle(stream), tell);
}

/** A source that pauses longer than this (milliseconds) has its written bytes flushed to the client. */
const IDLE_FLUSH_MS = 20;
/** A source that goes on, word by word, for longer than this (milliseconds) is flushed too: no person reads faster. */
const LONGEST_WAIT_MS = 100;

/**
 * Lines of a slow export would wait until a compressor's buffer is full. A flush costs a few bytes of ratio, so it is
 * done only once the source has paused, or when the first of its bytes has waited for long.
 */
function flushWhenIdle(stream: Transform & zlib.Zlib): Transform & zlib.Zlib {
  let flushing = false;
  let waitsSinceMs: number | null = null;
  const flush = (): void => {
    if (stream.writableEnded || stream.destroyed) return;
    if (stream.writableLength > 0) return void timer?.refresh();
    waitsSinceMs = null;
    flushing = true;
    stream.flush();
    flushing = false;
  };
  let timer: NodeJS.Timeout | null = null;
  const write = stream.write.bind(stream) as (...parameters: unknown[]) => boolean;
  stream.write = (...parameters: unknown[]): boolean => {
    // `flush()` writes too, and must not schedule another flush.
    if (flushing) return write(...parameters);
    const nowMs = performance.now();
    waitsSinceMs ??= nowMs;
    if (timer === null) timer = setTimeout(flush, IDLE_FLUSH_MS).unref();
    else if (nowMs - waitsSinceMs < LONGEST_WAIT_MS) timer.refresh();
    return write(...parameters);
  };
  stream.once('close', () => clearTimeout(timer ?? undefined));
  return stream;
}

/** Counts in `push`: a `data` listener would start the flow before the stream has its reader. */
function counted(stream: Transform & zlib.Zlib, tell: Tell): Transform {
  let bytesOut = 0;
  const push = stream.push.bind(stream);
  stream.push = (chunk: Buffer | null) => {
    bytesOut += chunk?.byteLength ?? 0;
    return push(chunk);
  };
  stream.once('end', () => tell(stream.bytesWritten, bytesOut));
  return stream;
}
