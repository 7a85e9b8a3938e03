import { applyDecorators, SetMetadata, UseFilters, UseGuards } from '@nestjs/common';
import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import { SharedResponseFilter } from './shared-response.filter.js';
import { SharedResponseGuard } from './shared-response.guard.js';
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
 * @throws PERF_ERR_DECORATOR when `ttlMs` is no number above 0 or `varyBy` no function
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
  const { ttlMs, varyBy } = (options ?? {}) as Partial<SharedResponseOptions>;
  if (typeof ttlMs !== 'number' || !Number.isFinite(ttlMs) || ttlMs <= 0) {
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `@SharedResponse() on "${where}": \`ttlMs\` must be a number of milliseconds above 0, got ${describe(ttlMs)}. ` +
        'Give the time for which one answer may serve everybody, for example `{ ttlMs: 15_000 }`.',
    );
  }
  if (varyBy !== undefined && typeof varyBy !== 'function') {
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `@SharedResponse() on "${where}": \`varyBy\` must be a function of the request that returns a string, got ${describe(varyBy)}.`,
    );
  }
}
