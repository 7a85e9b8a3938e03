import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { FastifyReply, FastifyRequest } from './response-view.js';

type Done = (error: unknown, payload?: unknown) => void;
export type PreParsing = (request: FastifyRequest, reply: FastifyReply, payload: IncomingMessage, done: Done) => void;
/** Fastify compares it with `Content-Length`. */
type Inflating = Transform & { receivedEncodedLength: number };

const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform };
const DECODERS: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: zlib.createGunzip,
  'x-gzip': zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** Nest's own parsers of these have a limit of their own, which Fastify keeps: it counts the decoded bytes that it reads. */
const READ_WHOLE = /^(application\/(json|x-www-form-urlencoded)|text\/plain)\b/i;

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
  const inflating = Object.assign(create(), { receivedEncodedLength: 0 });
  if (!READ_WHOLE.test(raw.headers['content-type'] ?? '')) limit(inflating, request.routeOptions.bodyLimit);
  inflating.on('error', (error) => {
    if (!('statusCode' in error)) asFastifyError(error, 400, `The body is not valid ${coding}: ${error.message}`);
  });
  feed(inflating, payload);
  // Of a body that nobody has read the rest must not stay on the connection.
  reply.raw.once('finish', () => inflating.destroy());
  done(null, inflating);
};

function feed(inflating: Inflating, payload: IncomingMessage): void {
  inflating.once('close', () => {
    payload.unpipe(inflating);
    payload.resume();
  });
  payload.on('data', (chunk: Buffer) => (inflating.receivedEncodedLength += chunk.byteLength));
  payload.once('close', () => {
    if (!payload.readableEnded) inflating.destroy(new Error('the client has gone'));
  });
  payload.pipe(inflating);
}

/** Not by a `data` listener: one would set it flowing before its reader is there. */
function limit(inflating: Inflating, maxBytes: number): void {
  let bytes = 0;
  const push = inflating.push.bind(inflating);
  inflating.push = (chunk: Buffer | null): boolean => {
    bytes += chunk?.byteLength ?? 0;
    if (bytes <= maxBytes) return push(chunk);
    inflating.destroy(asFastifyError(new Error(), 413, 'Request body is too large'));
    return false;
  };
}

/** By this name Nest knows an error that brings its own status. */
const asFastifyError = (error: Error, statusCode: number, message: string): Error =>
  Object.assign(error, { name: 'FastifyError', statusCode, message });
