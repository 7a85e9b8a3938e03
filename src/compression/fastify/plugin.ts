import * as zlib from 'node:zlib';

/** A Fastify plugin, as far as it is used. */
export type FastifyPlugin = (instance: object, options: object, done: (error?: Error) => void) => void;

/** For `reply.compress()` alone. The plugin's own default quality is lost where other parameters are given, and then is 11. */
const OPTIONS = {
  global: false,
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
