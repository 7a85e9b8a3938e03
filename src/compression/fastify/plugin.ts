import * as zlib from 'node:zlib';
import { refuseSlowLevel } from '../compression.options.js';

/** A Fastify plugin, as far as it is used. */
export type FastifyPlugin = (instance: object, options: object, done: (error?: Error) => void) => void;

/** For `reply.compress()` alone. The plugin's own default quality is lost where other parameters are given, and then is 11. */
const OPTIONS = {
  // Also the plugin's default for request bodies: one of 89 bytes can make a decoder allocate 16 MB.
  global: false,
  globalDecompression: false,
  brotliOptions: {
    params: {
      [zlib.constants.BROTLI_PARAM_QUALITY]: 4,
      [zlib.constants.BROTLI_PARAM_MODE]: zlib.constants.BROTLI_MODE_TEXT,
    },
  },
};

/** Registers `@fastify/compress`, so that handlers find a `reply.compress()` with safe levels. */
export async function registerPlugin(fastify: {
  register(plugin: FastifyPlugin): PromiseLike<unknown>;
}): Promise<void> {
  const loaded = (await import('@fastify/compress')) as unknown as { default: FastifyPlugin };
  const plugin: FastifyPlugin = (instance, _options, done) => {
    // An application that registers the plugin later must not fail because its decorator is taken: `reply.compress()` is set
    // by the plugin's own hook on each request, declared or not.
    const undeclared = Object.create(instance, { decorateReply: { value: () => instance } }) as object;
    loaded.default(undeclared, OPTIONS, done);
  };
  await fastify.register(
    Object.assign(plugin, {
      [Symbol.for('skip-override')]: true,
      [Symbol.for('fastify.display-name')]: 'nestjs-perf compression',
    }),
  );
}

/** The `compress` option of a single Fastify route. */
export interface RouteCompressOption {
  brotliOptions?: { params?: Readonly<Record<number, number>> };
  zlibOptions?: { level?: number; params?: Readonly<Record<number, number>> };
}

/**
 * A route's own compression options must be safe too.
 * @throws PERF_ERR_OPTION when they ask for a level that is too slow for bodies made per request
 */
export function checkRouteLevels(url: string, option: RouteCompressOption): void {
  const { params } = option.brotliOptions ?? {};
  // Options without a quality drop the plugin's own default, and then zlib's applies, which is 11.
  const quality = option.brotliOptions === undefined ? 4 : (params?.[zlib.constants.BROTLI_PARAM_QUALITY] ?? 11);
  refuseSlowLevel(`compress.brotliOptions.params[BROTLI_PARAM_QUALITY] of route ${url}`, 'br', quality);
  refuseSlowLevel(`compress.zlibOptions.level of route ${url}`, 'gzip', option.zlibOptions?.level ?? 6);
}
