import type { Server } from 'node:http';
import type { Reporter } from '../core/reporter.js';
import type { Platform } from '../http/platform.js';
import { LEVEL_LIMITS } from './codec/compressor.js';

interface FastifyWithPlugins {
  hasPlugin(name: string): boolean;
}
interface ExpressWithRouter {
  readonly router?: { readonly stack?: readonly { readonly name: string }[] };
}

/** What must be known of the application to say what its own compressor does. */
export interface ForeignCompressors {
  readonly platform: Platform;
  readonly server: Server;
  readonly report: Reporter;
  /** Handlers that `@NoCompression()` stands on. */
  readonly offHandlers: readonly string[];
  /** `@fastify/compress` was there before the routes. */
  readonly beforeRoutes: boolean;
}

/**
 * Says, once the application listens, that it has registered a compressor itself. That keeps working: what this library has
 * encoded it leaves alone. Its registration is all that is looked at.
 */
export function tellOfForeignCompressors(application: ForeignCompressors): void {
  application.server.once('listening', () => {
    if (application.platform.kind === 'fastify') tellOnFastify(application);
    else tellOnExpress(application);
  });
}

function tellOnFastify({ platform, report, offHandlers, beforeRoutes }: ForeignCompressors): void {
  if (!(platform.application as FastifyWithPlugins).hasPlugin('@fastify/compress')) return;
  if (beforeRoutes) {
    const acts = 'decompresses requests, and acts in `reply.compress()` and';
    tell(report, '@fastify/compress', acts, offHandlers, ' unless clients send compressed requests');
    return;
  }
  report.warn(
    'The application registers @fastify/compress after its routes, where it compresses nothing. ' +
      'Remove it: PerfModule compresses.',
  );
}

function tellOnExpress({ platform, report, offHandlers }: ForeignCompressors): void {
  const stack = (platform.application as ExpressWithRouter).router?.stack ?? [];
  const count = stack.filter(({ name }) => name === 'compression').length;
  if (count > 1) {
    report.warn(
      `The \`compression\` middleware is registered ${count} times. Each one costs every response: keep none.`,
    );
  }
  if (count > 0) tell(report, 'the `compression` middleware', 'acts', offHandlers);
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
