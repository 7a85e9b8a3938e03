import { pipeline, Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { Body } from '../cache/cached-body.js';
import { compressStream } from '../codec/codec.js';
import type { ContentCoding } from '../rules/content-coding.js';
import type { CompressionEngine } from '../engine.js';
import { counted, type FastifyPlugin } from './plugin-options.js';
import { checkRouteLevels } from './route-levels.js';
import { type FastifyExchange, FastifyExchanges, type FastifyReply, type FastifyRequest } from './exchange.js';
import { registerPlugin, streamHookOf, type Done, type OnSend, type RouteOptions } from './plugin.js';
import { RepeatedSerialisation } from './serialisation.js';
import { PlainHeads } from './plain-head.js';
import { firstBytes, looksCompressed } from './first-bytes.js';
import { compressionOf, RouteCompression } from '../route-compression.js';

export interface FastifyInstance {
  addHook(name: 'onSend', hook: OnSend): unknown;
  addHook(name: 'onRoute', hook: (route: RouteOptions) => void): unknown;
  hasPlugin(name: string): boolean;
  register(plugin: FastifyPlugin): PromiseLike<unknown>;
  after(): PromiseLike<unknown>;
}

/** What the hook needs besides the engine. */
export interface FastifyCompression {
  readonly engine: CompressionEngine;
  readonly allowSlowLevels: boolean;
  /** Registers the route through which a foreign compressor is tried, and tells its requests. */
  readonly probe: { register(): void; covers(url: string | undefined): boolean };
}

/**
 * Installs compression on a Fastify application, before its routes exist. Whole bodies are encoded in a root `onSend` hook,
 * which runs before those of routes; streams are left to `@fastify/compress`. Returns whether the application has
 * registered that plugin itself; then it keeps its own, and streams are encoded here.
 */
export async function compressOnFastify(
  fastify: FastifyInstance,
  { engine, allowSlowLevels, probe }: FastifyCompression,
): Promise<{ foreign: boolean }> {
  // What main.ts has registered without awaiting it is loaded now, so that it can be seen.
  await fastify.after();
  const foreign = fastify.hasPlugin('@fastify/compress');
  if (!allowSlowLevels) {
    fastify.addHook('onRoute', ({ url, compress }) => {
      if (typeof compress === 'object') checkRouteLevels(url, compress);
    });
  }
  const serialisation = engine.parts.contentCache ? new RepeatedSerialisation() : null;
  const exchanges = new FastifyExchanges();
  const heads = new PlainHeads();
  const unrouted = new RouteCompression(false, null);
  const streams = foreign ? ownStreams(engine) : pluginStreams(engine);
  if (foreign) probe.register();
  fastify.addHook('onSend', (request, reply, payload, done) => {
    if (foreign && probe.covers(request.raw.url)) return done(null, payload);
    const state = stateOfMessage(request.raw);
    const route = compressionOf(state?.route) ?? unrouted;
    if (typeof payload === 'string' && state?.shared === null) {
      const plain = exchanges.plainHeaders(reply);
      if (plain !== null && engine.passesPlain(plain, payload, route)) {
        if (foreign) leaveAlone(request);
        if (plain['vary'] !== undefined) heads.prepare(reply.raw, plain['content-type'] as string);
        return finish(done, reply, payload);
      }
    }
    const exchange = exchanges.of(request, reply, state);
    if (typeof payload === 'string' && engine.passes(exchange, payload, route)) {
      if (foreign) leaveAlone(request);
      return finish(done, reply, payload);
    }
    const body = unwrapped(payload, reply);
    if (typeof body === 'string' || body instanceof Uint8Array) {
      if (foreign) leaveAlone(request);
      engine.send(exchange, body, route, (sent) => finish(done, reply, sent));
      serialisation?.sent(request, reply, route.repeated);
    } else if (body === null || body === undefined) {
      engine.sendNothing(exchange, route);
      done(null, body);
    } else if (body instanceof Readable) streams(request, reply, exchange, body, route, done);
    else done(null, body);
  });
  if (!foreign) await registerPlugin(fastify, engine);
  return { foreign };
}

type SendStream = (
  request: FastifyRequest,
  reply: FastifyReply,
  exchange: FastifyExchange,
  stream: Readable,
  route: RouteCompression,
  done: Done,
) => void;

/**
 * Streams through `@fastify/compress`. Where its output breaks RFC 9110 it is mended here: it negotiates `gzip;q=0, *` as
 * gzip (it is shown only the coding that was chosen), ignores `no-transform`, adds `accept-encoding` to a `Vary` that
 * has it in another case, keeps a strong ETag, answers HEAD without the headers of GET, and sends text that looks
 * like deflate unencoded under `Content-Encoding` (such streams are encoded here).
 */
function pluginStreams(engine: CompressionEngine): SendStream {
  const own = ownStreams(engine);
  return (request, reply, exchange, stream, route, done) => {
    // An unmatched request has no route that the plugin could have hooked.
    if (stateOfMessage(request.raw)?.route === null) return own(request, reply, exchange, stream, route, done);
    const hook = streamHookOf(request);
    const coding = engine.openStream(exchange, route);
    if (coding === null) {
      showOnly(request, 'identity');
      return done(null, stream);
    }
    if (exchange.method === 'HEAD') return done(null, stream);
    firstBytes(stream, (first) => {
      if (first !== null && looksCompressed(first)) return encodeHere(engine, coding, stream, route, done);
      exchange.remove('content-encoding');
      if (hook === null) return done(null, stream);
      showOnly(request, coding);
      hook(request, reply, stream, done);
    });
  };
}

/** Streams without the plugin. */
function ownStreams(engine: CompressionEngine): SendStream {
  return (request, _reply, exchange, stream, route, done) => {
    const coding = engine.openStream(exchange, route);
    leaveAlone(request);
    if (coding === null || exchange.method === 'HEAD') return done(null, stream);
    encodeHere(engine, coding, stream, route, done);
  };
}

function encodeHere(
  engine: CompressionEngine,
  coding: ContentCoding,
  stream: Readable,
  route: RouteCompression,
  done: Done,
): void {
  const encoder = counted(compressStream(coding, engine.streamLevel(coding)), {
    encoded: (bytesIn, bytesOut) => engine.streamed(route, bytesIn, bytesOut),
  });
  // Fastify sees the encoder fail and says so; a client that left is no failure.
  pipeline(stream, encoder, () => {});
  done(null, encoder);
}

/** Shows the plugin one coding only. The client's own headers stay as they are on the raw request. */
function showOnly(request: FastifyRequest, coding: ContentCoding | 'identity'): void {
  request.headers = { 'accept-encoding': coding };
}

/** Makes any `@fastify/compress` step aside. */
function leaveAlone(request: FastifyRequest): void {
  request.headers = { 'x-no-compression': '1' };
}

/** The body of a web `Response` with its head put on the reply, a web stream as Node's. */
function unwrapped(payload: unknown, reply: FastifyReply): unknown {
  if (typeof payload !== 'object' || payload === null || payload instanceof Uint8Array) return payload;
  let body: object | null = payload;
  if (typeof Response === 'function' && body instanceof Response) {
    reply.code(body.status);
    for (const [name, value] of body.headers) reply.header(name, value);
    body = body.body;
  }
  return body instanceof ReadableStream ? Readable.fromWeb(body) : body;
}

/** Node's own errors for a head that cannot be written (a character that is not allowed) must reach Fastify, whenever they come. */
function finish(done: Done, reply: FastifyReply, body: Body | null): void {
  try {
    done(null, body);
  } catch (error) {
    if (reply.raw.headersSent) reply.raw.destroy();
    else done(error);
  }
}
