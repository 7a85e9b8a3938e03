import type { Server } from 'node:http';
import type { Reporter } from '../core/reporter.js';
import { LEVEL_LIMITS } from './codec/compressor.js';

/**
 * Says, once the application listens, that it has registered `@fastify/compress` itself. That keeps working: it leaves encoded
 * responses alone. `beforeRoutes`: it was registered before them. `uncompressed`: handlers with `@NoCompression()`.
 */
export function sayForeignCompressor(
  fastify: { hasPlugin(name: string): boolean },
  server: Server,
  report: Reporter,
  uncompressed: readonly string[],
  beforeRoutes: boolean,
): void {
  server.once('listening', () => {
    if (!fastify.hasPlugin('@fastify/compress')) return;
    if (beforeRoutes) {
      const acts = 'decompresses requests, and acts in `reply.compress()` and';
      return tell(report, '@fastify/compress', acts, uncompressed, ' unless clients send compressed requests');
    }
    report.warn(
      'The application registers @fastify/compress after its routes, where it compresses nothing. ' +
        'Remove it: PerfModule compresses.',
    );
  });
}

const { safe, cost } = LEVEL_LIMITS.br;

/** What it does to handlers that it does not bind to their decorators is worth a warning. */
function tell(report: Reporter, name: string, acts: string, offHandlers: readonly string[], unless = ''): void {
  const harm =
    offHandlers.length === 0 ? '' : ` @NoCompression() on ${offHandlers.join(', ')} does not bind it: remove it.`;
  report[harm === '' ? 'log' : 'warn'](
    `The application registers ${name} itself. PerfModule encodes before it, so it only ${acts} on what PerfModule leaves ` +
      `alone; it can be removed${unless}. If you keep it, give brotli a quality of at most ${safe}, since without one it may be 11: ${cost}.${harm}`,
  );
}
