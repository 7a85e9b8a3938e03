import { PerfError } from '../core/perf.error.js';
import { requestContext } from '../core/request-context.js';
import type { Deferrer } from './deferrer.js';
import { off } from './deferrer.js';
import type { DeferInfo, DeferWorkOptions } from './deferred-work.js';

/**
 * {@link Deferrer.defer} without injection, inside a request.
 * @throws PERF_ERR_CONTEXT_OFF outside a request or with the context store off, and what `deferrer.defer()` throws
 */
export function defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void {
  const state = requestContext.getStore();
  if (state === undefined) {
    throw new PerfError(
      'PERF_ERR_CONTEXT_OFF',
      '`defer()` was called outside a request, or the context store is off. ' +
        'In a request, set `context: true` in PerfModule.forRoot(); elsewhere inject `Deferrer` and call `deferrer.defer()`.',
    );
  }
  const deferrer = state.owner.deferrer as Deferrer | null;
  if (deferrer === null) throw off('defer()');
  deferrer.defer(task, options);
}
