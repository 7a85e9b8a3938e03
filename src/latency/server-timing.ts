import type { MonotonicClock } from '../core/clock.js';
import { TIME_SO_FAR } from '../core/request-time.js';
import type { RequestState } from '../core/request-state.js';
import type { Platform } from '../http/platform.js';

/**
 * Adds `Server-Timing` (W3C) to a response, milliseconds until its head is written: `total`, and of it `up` (upstream calls were
 * under way), `own` (the event loop was busy) and `wait` (it waited for something else).
 */
export function addServerTiming(state: RequestState, platform: Platform, nowMs: MonotonicClock): void {
  const { response, startedMs, owner } = state;
  if (response === null) return;
  platform.beforeHead(response, () => {
    const parts = { total: nowMs() - startedMs, ...partsOf(TIME_SO_FAR.get(owner)?.(state) ?? null) };
    const ours = Object.entries(parts).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
    const existing = response.getHeader('server-timing');
    response.setHeader('server-timing', [...(existing === undefined ? [] : [String(existing)]), ...ours].join(', '));
  });
}

const partsOf = (time: { busyMs: number; upstreamMs: number; idleMs: number } | null): Record<string, number> =>
  time === null ? {} : { own: time.busyMs, up: time.upstreamMs, wait: time.idleMs };
