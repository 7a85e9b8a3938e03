import type { Transform } from 'node:stream';
import { compressStream } from '../codec/codec.js';
import type { ContentCoding } from '../rules/content-coding.js';

/** What `@fastify/compress` is told about streams. */
export interface StreamCodec {
  readonly encodings: readonly ContentCoding[];
  level(coding: ContentCoding): number;
  /** Called when a stream has been encoded. */
  encoded(bytesIn: number, bytesOut: number): void;
}

/** A Fastify plugin, as far as it is used. */
export type FastifyPlugin = (instance: object, options: object, done: (error?: Error) => void) => void;

/**
 * Options under which `@fastify/compress` carries streams and decompresses requests, and nothing else:
 * - whole bodies are below any threshold: they belong to the engine;
 * - every type: which streams it gets to see as compressible is decided before;
 * - its compressors are made here, at explicit levels. Its own defaults merge shallowly, so that
 *   `brotliOptions: { params: { MODE } }` runs brotli at 11, and it gives zstd the options of zlib.
 */
export function fastifyCompressOptions(codec: StreamCodec): object {
  const encoder = (coding: ContentCoding) => (): Transform =>
    counted(compressStream(coding, codec.level(coding)), codec);
  return {
    global: true,
    threshold: Number.POSITIVE_INFINITY,
    encodings: [...codec.encodings],
    customTypes: () => true,
    zlib: {
      createBrotliCompress: encoder('br'),
      createGzip: encoder('gzip'),
      createDeflate: encoder('deflate'),
      ...(codec.encodings.includes('zstd') ? { createZstdCompress: encoder('zstd') } : {}),
    },
  };
}

/** Counts a stream's bytes when it ends. Not with a `data` listener: one would set the stream flowing before its reader is there. */
export function counted(stream: Transform, codec: Pick<StreamCodec, 'encoded'>): Transform {
  let bytesOut = 0;
  const push = stream.push.bind(stream);
  stream.push = (chunk: Buffer | null) => {
    bytesOut += chunk?.byteLength ?? 0;
    return push(chunk);
  };
  stream.once('end', () => codec.encoded((stream as unknown as { bytesWritten: number }).bytesWritten, bytesOut));
  return stream;
}
