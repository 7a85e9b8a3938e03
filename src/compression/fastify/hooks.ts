import { pipeline, Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { stateOf } from '../../request/tracker.js';
import type { Body } from '../cache/content-cache.js';
import type { CompressionEngine } from '../engine.js';
import { compressionOf } from '../route-compression.js';
import { seal } from '../sealed-response.js';
import { showCondition } from './hidden-condition.js';
import { checkRouteLevels, registerPlugin, type FastifyPlugin, type RouteCompressOption } from './plugin.js';
import { FastifyResponseView, type FastifyReply, type FastifyRequest } from './response-view.js';

type Done = (error?: unknown, payload?: unknown) => void;
type OnSend = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done) => void;
/** In a route's `config`: its own `compress: false`. */
const OFF: unique symbol = Symbol('perf:compress-off');

interface RouteOptions {
  readonly url: string;
  readonly compress?: RouteCompressOption | false;
  config?: { [OFF]?: boolean };
  onRequest?: unknown;
  onSend?: unknown;
}

/** The part of Fastify 5 that is used; structural, so that no vendor's type is needed. */
export interface FastifyInstance {
  addHook(name: 'onSend', hook: OnSend): unknown;
  addHook(name: 'onRoute', hook: (route: RouteOptions) => void): unknown;
  hasPlugin(name: string): boolean;
  register(plugin: FastifyPlugin): PromiseLike<unknown>;
  after(): PromiseLike<unknown>;
}

/**
 * Installs compression on a Fastify application, before its routes exist: a root `onSend` hook, which runs before those of routes.
 * Returns whether the application has registered `@fastify/compress` itself.
 */
export async function compressOnFastify(
  fastify: FastifyInstance,
  engine: CompressionEngine,
  allowSlowLevels: boolean,
): Promise<boolean> {
  // What main.ts has registered without awaiting it is loaded now, so that it can be seen.
  await fastify.after();
  const foreign = fastify.hasPlugin('@fastify/compress');
  let someOff = false;
  fastify.addHook('onRoute', (route) => {
    if (typeof route.compress === 'object' && !allowSlowLevels) checkRouteLevels(route.url, route.compress);
    if (route.compress === false) {
      route.config = { ...route.config, [OFF]: true };
      someOff = true;
    }
    // The plugin adds to the arrays that it finds, and several routes may have been given the same.
    if (Array.isArray(route.onRequest)) route.onRequest = [...(route.onRequest as unknown[])];
    if (Array.isArray(route.onSend)) route.onSend = [...(route.onSend as unknown[])];
  });
  fastify.addHook('onSend', (request, reply, payload, done) => {
    const state = stateOf(request);
    if (state !== null) showCondition(state, request);
    // Fastify makes these options anew for each who asks.
    const config: RouteOptions['config'] = someOff ? request.routeOptions.config : undefined;
    const route = config?.[OFF] === true ? engine.off : (compressionOf(state) ?? engine.unrouted);
    const view = new FastifyResponseView(request, reply, route);
    // As `@fastify/etag` answers who has the body already.
    if (payload === '' && view.status === 304) return engine.sendNothing(view, () => done(null, payload));
    if (typeof payload === 'string' && engine.passes(view, payload)) return done(null, payload);
    const body = payload instanceof ReadableStream ? Readable.fromWeb(payload) : payload;
    if (typeof body === 'string' || body instanceof Uint8Array) {
      let open: (() => void) | null = null;
      let isSent = false;
      engine.send(view, body, (sent) => {
        isSent = true;
        open?.();
        finish(done, view, reply, sent ?? nothingFor(view));
      });
      // While it is being encoded it looks sent, as it would be: the first answer wins.
      if (!isSent) open = seal(reply.raw);
    } else if (body === null || body === undefined) {
      engine.sendNothing(view, () => done(null, body));
    } else if (isStream(body)) finish(done, view, reply, encoded(body, view, reply, engine));
    else done(null, body);
  });
  if (!foreign) await registerPlugin(fastify);
  return foreign;
}

/** As Fastify tells it: streams of other packages than Node's own count. */
const isStream = (body: unknown): body is Readable => typeof (body as Partial<Readable>).pipe === 'function';

/** Fastify's own hook of HEAD routes asks whatever is sent for its length, and counts an empty text as 0. */
const nothingFor = ({ method }: FastifyResponseView): Readable | null => (method === 'HEAD' ? Readable.from([]) : null);

/** The stream, or what encodes it. */
function encoded(
  stream: Readable,
  view: FastifyResponseView,
  reply: FastifyReply,
  engine: CompressionEngine,
): Readable {
  const encoder = engine.openStream(view);
  stream.once('error', () => {
    // Fastify answers with the error.
    if (!reply.raw.headersSent) view.undo();
  });
  if (encoder === null) return stream;
  // Fastify sees the encoder fail and says so; a client that left is no failure.
  pipeline(stream, encoder, () => {});
  return encoder;
}

/** Node's own errors for a head that cannot be written (a character that is not allowed) must reach Fastify, whenever they come. */
function finish(done: Done, view: FastifyResponseView, reply: FastifyReply, body: Body | Readable | null): void {
  try {
    done(null, body);
  } catch (error) {
    if (reply.raw.headersSent) return void reply.raw.destroy();
    view.undo();
    done(error);
  }
}
