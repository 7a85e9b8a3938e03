import { applyDecorators, SetMetadata, UseFilters, UseGuards } from '@nestjs/common';
import { MAX_TIMER_MS } from '../../core/clock.js';
import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import { SharedResponseFilter, SharedResponseGuard } from './shared-response.guard.js';
import type { SharedResponseOptions } from './shared-route.js';

export const SHARED_RESPONSE_METADATA = 'perf:shared-response';

/**
 * For `ttlMs` one answer for every caller of one URL: handler, interceptors, serialisation and compression run once. The key is
 * the method, the path and query as sent, and `varyBy(request)`. Guards run for every request; pipes and interceptors
 * only for the one that makes the answer. When it has expired, one request makes the next while the others still get it.
 * An answer with `Set-Cookie`, `private` or `no-store`, a stream, or a status other than 200 serves its own request only.
 *
 * For GET handlers; on anything else the boot stops with `PERF_ERR_DECORATOR`.
 *
 * @example
 * ```ts
 * @Get('flights') @SharedResponse({ ttlMs: 15_000 }) flights() { … }
 * ```
 * A request with `Authorization` gets an answer of its own unless something says that it may share.
 *
 * @throws PERF_ERR_DECORATOR for options that are none, naming the handler
 */
export function SharedResponse(options: SharedResponseOptions): MethodDecorator {
  return (target, property, descriptor) => {
    check(options, `${target.constructor.name}.${String(property)}`);
    applyDecorators(
      SetMetadata(SHARED_RESPONSE_METADATA, Object.freeze({ ...options })),
      UseGuards(new SharedResponseGuard()),
      UseFilters(new SharedResponseFilter()),
    )(target, property, descriptor);
  };
}

function check(options: unknown, where: string): void {
  const { ttlMs, varyBy, authorized, waitMs, preload } = (options ?? {}) as Partial<SharedResponseOptions>;
  const refuse = (what: string, given: unknown, advice = ''): never => {
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `@SharedResponse() on "${where}": ${what}, got ${describe(given)}.${advice}`,
    );
  };
  if (!isDuration(ttlMs)) {
    const advice = ' Give the time for which one answer may serve everybody, for example `{ ttlMs: 15_000 }`.';
    refuse('`ttlMs` must be a number of milliseconds above 0', ttlMs, advice);
  }
  if (varyBy !== undefined && typeof varyBy !== 'function') {
    refuse('`varyBy` must be a function of the request that returns a string', varyBy);
  }
  if (authorized !== undefined && authorized !== 'share')
    refuse("`authorized` must be `'share'` or absent", authorized);
  if (waitMs !== undefined && !(isDuration(waitMs) && waitMs <= MAX_TIMER_MS)) {
    refuse(`\`waitMs\` must be a number of milliseconds above 0 and up to ${MAX_TIMER_MS}`, waitMs);
  }
  if (preload !== undefined && typeof preload !== 'boolean') refuse('`preload` must be a boolean', preload);
}

const isDuration = (ms: unknown): ms is number => typeof ms === 'number' && Number.isFinite(ms) && ms > 0;
