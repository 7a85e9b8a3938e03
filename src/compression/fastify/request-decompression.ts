import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { FastifyReply, FastifyRequest } from './response-view.js';

type Done = (error: unknown, payload?: unknown) => void;
export type PreParsing = (request: FastifyRequest, reply: FastifyReply, payload: IncomingMessage, done: Done) => void;

type Decoder = Transform & zlib.Zlib;
/** Without zstd: Node's decoder passes over all frames but the first, and Node 22's takes a body that was cut off for a whole one. */
const DECODERS: Readonly<Record<string, (() => Decoder) | undefined>> = {
  gzip: zlib.createGunzip,
  'x-gzip': zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
};

/** Codes of errors about the bytes; brotli's have two forms. Any other is its reader's own. */
const OF_ZLIB = /^(Z_|ERR__ERROR_|ERR_BROTLI)/;

/**
 * Decodes the bodies of requests. Codings that it does not know, several at once among them, are the application's own business.
 * Bodies that are not what they say are answered with 400, and what passes the body limit is inflated no further.
 */
export const decompressRequest: PreParsing = (request, reply, payload, done) => {
  const { raw } = request;
  // The application has put a stream of its own there: it decodes by itself.
  if (raw.method === 'GET' || raw.method === 'HEAD' || payload !== raw) return done(null, payload);
  const coding = (raw.headers['content-encoding'] ?? '').trim().toLowerCase();
  const create = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined;
  if (create === undefined) return done(null, payload);
  const inflating = create();
  watch(inflating, payload, request.routeOptions.bodyLimit);
  inflating.on('error', (error: NodeJS.ErrnoException) => {
    if (OF_ZLIB.test(error.code ?? '')) asFastifyError(error, 400, `The body is not valid ${coding}: ${error.message}`);
  });
  whenRead(inflating, () => feed(inflating, payload));
  // Of a body that nobody has read the rest must not stay on the connection.
  reply.raw.once('finish', () => inflating.destroy());
  done(null, inflating);
};

/** Not before: a handler may read the request's own bytes, as a proxy does. */
function whenRead(inflating: Transform, begin: () => void): void {
  const heard = (event: string | symbol): void => {
    if (event !== 'data' && event !== 'readable') return;
    inflating.off('newListener', heard);
    begin();
  };
  inflating.on('newListener', heard);
}

function feed(inflating: Transform, payload: IncomingMessage): void {
  inflating.once('close', () => {
    payload.unpipe(inflating);
    payload.resume();
  });
  payload.once('close', () => {
    if (!payload.readableEnded) inflating.destroy(new Error('the client has gone'));
  });
  payload.pipe(inflating);
}

/**
 * Counts both sides: for Fastify, which compares `receivedEncodedLength` with `Content-Length` where it reads a body whole, and
 * for what is refused. Not by a `data` listener of the decoder: one would set it flowing before its reader is there.
 */
function watch(inflating: Decoder, payload: IncomingMessage, maxBytes: number): void {
  let encodedBytes = 0;
  let bytes = 0;
  // Then it counts what it reads itself: a parser may have a limit of its own.
  let byFastify = false;
  inflating.once('pipe', () => payload.on('data', (chunk: Buffer) => (encodedBytes += chunk.byteLength)));
  Object.defineProperty(inflating, 'receivedEncodedLength', {
    get: () => {
      byFastify = true;
      return encodedBytes;
    },
  });
  const push = inflating.push.bind(inflating);
  inflating.push = (chunk: Buffer | null): boolean => {
    bytes += chunk?.byteLength ?? 0;
    if (bytes > maxBytes && !byFastify) {
      inflating.destroy(asFastifyError(new Error(), 413, 'Request body is too large'));
      return false;
    }
    // Node's decoders pass over what they have no use for.
    if (chunk === null && inflating.bytesWritten < encodedBytes) {
      inflating.destroy(Object.assign(new Error('more bytes follow its end'), { code: 'Z_DATA_ERROR' }));
      return false;
    }
    return push(chunk);
  };
}

/** By this name Nest knows an error that brings its own status. */
const asFastifyError = (error: Error, statusCode: number, message: string): Error =>
  Object.assign(error, { name: 'FastifyError', statusCode, message });
