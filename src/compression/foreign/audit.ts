import type { Server } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { Reporter } from '../../core/reporter.js';
import type { FastifyInstance } from '../fastify/hooks.js';
import { foreignOnExpress, probeMiddleware } from './express.js';
import type { FastifyProbe } from './fastify.js';
import { brotliQualityOf } from './probe-body.js';
import { LEVEL_LIMITS } from '../codec/level.js';

/** What the audit has to know of the application. */
export interface AuditedApplication {
  readonly adapter: AbstractHttpAdapter;
  readonly report: Reporter;
  /** Handlers that `@Sse()` and `@NoCompression()` stand on. */
  readonly eventHandlers: readonly string[];
  readonly offHandlers: readonly string[];
  /** Made where the application has registered `@fastify/compress` before the routes; null elsewhere. */
  readonly probe: FastifyProbe | null;
}

/**
 * Looks, once the application listens, for a compressor that it has registered itself. It keeps working: what this library has
 * encoded it leaves alone. A warning says what is unsafe about it. Nothing is tried where nothing is found.
 */
export function auditOnceListening(application: AuditedApplication): void {
  const { adapter, report } = application;
  (adapter.getHttpServer() as Server).once('listening', () => {
    const audit = adapter.getType() === 'fastify' ? auditFastify(application) : auditExpress(application);
    audit.catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      report.warn(`The compressor that the application has registered itself could not be examined: ${reason}.`);
    });
  });
}

async function auditFastify({ adapter, report, probe }: AuditedApplication): Promise<void> {
  const fastify = adapter.getInstance<FastifyInstance & Parameters<FastifyProbe['run']>[0]>();
  if (!fastify.hasPlugin('@fastify/compress')) return;
  if (probe === null) {
    report.warn(
      'The application registers @fastify/compress after its routes, where it compresses nothing. ' +
        'Remove it: PerfModule compresses, with @fastify/compress for streams.',
    );
    return;
  }
  const { coding, body } = await probe.run(fastify);
  if (coding === 'br') await warnOfSlowBrotli('@fastify/compress', 'in `reply.compress()`', body, report);
  report.log(
    'The application registers @fastify/compress itself. PerfModule encodes before it, so it only acts in `reply.compress()`; it can be removed.',
  );
}

async function auditExpress({ adapter, report, eventHandlers, offHandlers }: AuditedApplication): Promise<void> {
  const found = foreignOnExpress(adapter.getInstance());
  if (found.length === 0) return;
  if (found.length > 1) {
    report.warn(
      `The \`compression\` middleware is registered ${found.length} times. Each one costs every response: keep none.`,
    );
  }
  for (const middleware of found) {
    const { coding, body } = await probeMiddleware(middleware);
    if (coding === 'br') await warnOfSlowBrotli('compression', 'on what PerfModule leaves to it', body, report);
  }
  const events =
    eventHandlers.length === 0
      ? ''
      : ` It holds the events of ${eventHandlers.join(', ')} back until its buffer is full: remove it.`;
  const off =
    offHandlers.length === 0 ? '' : ` @NoCompression() on ${offHandlers.join(', ')} does not bind it: remove it.`;
  const summary =
    'The application registers the `compression` middleware itself. PerfModule encodes before it, so it only acts on what PerfModule leaves alone; it can be removed.';
  if (events === '' && off === '') report.log(summary);
  else report.warn(summary + events + off);
}

async function warnOfSlowBrotli(name: string, where: string, body: Buffer, report: Reporter): Promise<void> {
  const quality = await brotliQualityOf(body);
  const { safe, cost } = LEVEL_LIMITS.br;
  if (quality <= safe) return;
  report.warn(
    `The application's own \`${name}\` runs brotli at quality ${quality}, ${where}; up to ${safe} is safe: ${cost}. ` +
      'Remove it, or set the quality: options that set only other brotli parameters drop the default and give 11.',
  );
}
