import type { CompressionEngine } from '../engine.js';
import { fastifyCompressOptions, type FastifyPlugin } from './plugin-options.js';
import type { RouteCompressOption } from './route-levels.js';
import type { FastifyReply, FastifyRequest } from './exchange.js';

export type Done = (error?: unknown, payload?: unknown) => void;
export type OnSend = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done) => void;

/** Where a route's `config` carries the plugin's hook for streams. */
const STREAM_HOOK: unique symbol = Symbol('perf:stream-hook');

interface RouteConfig {
  [STREAM_HOOK]?: OnSend | null;
}
export interface RouteOptions {
  url: string;
  method: string | readonly string[];
  compress?: RouteCompressOption | false;
  onRequest?: unknown;
  onSend?: OnSend | OnSend[];
  preParsing?: unknown;
  config?: RouteConfig;
}
type OnRoute = (route: RouteOptions) => void;
interface Registering {
  addHook(name: string, hook: OnRoute): unknown;
  register(plugin: FastifyPlugin): PromiseLike<unknown>;
}

/** The plugin's hook for the streams of the route that a request has matched; null for a route that has it off, or is older. */
export function streamHookOf({ routeOptions }: FastifyRequest): OnSend | null {
  const config: RouteConfig | undefined = routeOptions.config;
  return config?.[STREAM_HOOK] ?? null;
}

/** Registers `@fastify/compress` in a way that costs the responses and requests it has nothing to do with nothing. */
export async function registerPlugin(fastify: Registering, engine: CompressionEngine): Promise<void> {
  const loaded = (await import('@fastify/compress')) as unknown as { default: FastifyPlugin };
  const options = fastifyCompressOptions({
    encodings: engine.parts.encodings,
    level: (coding) => engine.streamLevel(coding),
    encoded: (bytesIn, bytesOut) => engine.totals.encoded(bytesIn, bytesOut),
  });
  const plugin: FastifyPlugin = (instance, _options, done) => {
    loaded.default(withoutBallast(instance as Registering), options, done);
  };
  await fastify.register(
    Object.assign(plugin, {
      [Symbol.for('skip-override')]: true,
      [Symbol.for('fastify.display-name')]: 'nestjs-perf compression',
    }),
  );
}

function withoutBallast(instance: Registering): object {
  return Object.create(instance, {
    // An application that registers the plugin later, where it does nothing any more, must not fail because its
    // decorator is taken: `reply.compress()` is set by the plugin's own hook on each request, declared or not.
    decorateReply: { value: () => instance },
    addHook: {
      value: (name: string, hook: OnRoute) =>
        instance.addHook(name, name === 'onRoute' ? (route) => takeHooks(route, hook) : hook),
    },
  }) as object;
}

/**
 * Lets the plugin add its hooks to a route, and takes off again what would run for nothing on each request:
 * - `onSend`, which negotiates for every response before it sees that a whole body is none of its business. It is kept
 *   for streams, and called for them alone. A route with `compress` options of its own keeps its hook.
 * - `preParsing` on GET and HEAD, whose bodies Fastify does not read. Asking it for `content-encoding` is what makes Node
 *   parse the headers of a request that nobody else asks.
 */
function takeHooks(route: RouteOptions, add: OnRoute): void {
  const { onSend, preParsing } = route;
  // The plugin adds to the arrays that it finds, and several routes may have been given the same.
  for (const name of ['onRequest', 'onSend', 'preParsing'] as const) {
    if (Array.isArray(route[name])) route[name] = [...route[name]] as OnSend[];
  }
  add(route);
  const hook = listOf(route.onSend).length > listOf(onSend).length ? listOf(route.onSend).at(-1)! : null;
  route.config = { ...route.config, [STREAM_HOOK]: hook };
  if (hook !== null && route.compress === undefined) restore(route, 'onSend', onSend);
  if ([route.method].flat().every((method) => method === 'GET' || method === 'HEAD')) {
    restore(route, 'preParsing', preParsing);
  }
}

function listOf(hooks: OnSend | OnSend[] | undefined): OnSend[] {
  return hooks === undefined ? [] : [hooks].flat();
}

function restore(route: RouteOptions, name: 'onSend' | 'preParsing', value: any): void {
  if (value === undefined) Reflect.deleteProperty(route, name);
  else route[name] = value;
}
