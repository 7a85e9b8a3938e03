import * as zlib from 'node:zlib';
import { installedPeer } from '../core/optional-peer.js';

/** A Fastify plugin; structural, so that no vendor's type is needed. */
type FastifyPlugin = (instance: object, options: object, done: (error?: Error) => void) => void;

export interface FastifyApplication {
  after(): PromiseLike<unknown>;
  hasPlugin(name: string): boolean;
  register(plugin: FastifyPlugin): PromiseLike<unknown>;
}

const OPTIONS = {
  global: false,
  // On by default: a request body of 89 bytes can make a decoder allocate 16 MB.
  globalDecompression: false,
  // Any parameters replace all of the plugin's own, so the quality must be among them: zlib's default is 11.
  brotliOptions: {
    params: {
      [zlib.constants.BROTLI_PARAM_QUALITY]: 4,
      [zlib.constants.BROTLI_PARAM_MODE]: zlib.constants.BROTLI_MODE_TEXT,
    },
  },
};

/** Registers `@fastify/compress` with safe levels for `reply.compress()`, where it is installed and the application has not. */
export async function registerReplyCompress(fastify: FastifyApplication): Promise<void> {
  // Waits for plugins that main.ts has registered without awaiting them.
  await fastify.after();
  if (fastify.hasPlugin('@fastify/compress')) return;
  const loaded = await installedPeer('@fastify/compress', () => import('@fastify/compress'));
  if (loaded === null) return;
  const compress = loaded.default as unknown as FastifyPlugin;
  const plugin: FastifyPlugin = (instance, _options, done) => {
    // Without its declaration the name `compress` stays free: an application may still register the plugin itself, later.
    const undeclared = Object.create(instance, { decorateReply: { value: () => instance } }) as object;
    compress(undeclared, OPTIONS, done);
  };
  await fastify.register(
    Object.assign(plugin, {
      [Symbol.for('skip-override')]: true,
      [Symbol.for('fastify.display-name')]: 'nestjs-perf reply.compress()',
    }),
  );
}
