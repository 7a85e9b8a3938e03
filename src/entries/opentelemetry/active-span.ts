import type { SpanRef } from '../../core/record.js';

export type Api = typeof import('@opentelemetry/api');

export function activeSpan(api: Api): SpanRef | null {
  const context = api.trace.getActiveSpan()?.spanContext();
  return context !== undefined && api.isSpanContextValid(context) ? context : null;
}
