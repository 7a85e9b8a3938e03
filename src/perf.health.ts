import { BADLY_THROTTLED, mb, percent } from './core/figures.js';
import type { ResourceSample } from './core/record.js';
import type { DeferStats, EventLoopSnapshot, PerfSnapshot } from './core/snapshot.js';
import type { HealthReason } from './ports/overview.js';

/** Whether the process can do its work, for a health check. */
export interface PerfHealth {
  readonly status: 'ok' | 'degraded';
  /** The reasons in words; empty when all is well. A feature that is off has none. */
  readonly reasons: readonly string[];
}

/** Whether the process shall get requests, for a readiness probe. */
export interface PerfReadiness {
  readonly ready: boolean;
  /** Why not, in words; empty when it is ready. */
  readonly reasons: readonly string[];
}

/** Share of the last 5 to 10 s: a loop without rest is degraded, one long block is not. */
const BUSY = 0.95;
const LATE_MS = 500;
const HEAP_FULL = 0.9;
const DEFER_FULL = 0.8;

/** Finds the reasons that a snapshot shows. `maxPending`: how much deferred work may wait; null with it off. */
export function findReasons({ eventLoop, resources, defer }: PerfSnapshot, maxPending: number | null): HealthReason[] {
  const loop = eventLoop === null ? [] : loopReasons(eventLoop);
  const container = resources === null ? [] : resourceReasons(resources);
  const work = defer === null || maxPending === null ? [] : deferReasons(defer, maxPending);
  return [
    ...loop.map((text) => ({ about: 'event-loop' as const, text })),
    ...container.map((text) => ({ about: 'resources' as const, text })),
    ...work.map((text) => ({ about: 'defer' as const, text })),
  ];
}

export const judgeHealth = (reasons: readonly HealthReason[]): PerfHealth => ({
  status: reasons.length === 0 ? 'ok' : 'degraded',
  reasons: reasons.map(({ text }) => text),
});

function loopReasons({ utilization, delayMs }: EventLoopSnapshot): string[] {
  const reasons: string[] = [];
  if (utilization > BUSY) reasons.push(`event loop: ${percent(utilization)} busy`);
  if (delayMs.p99 > LATE_MS)
    reasons.push(`event loop: p99 delay ${delayMs.p99.toFixed(0)} ms, for which requests wait before Node reads them`);
  return reasons;
}

/** Low memory of the container is a reason of the resources feature: a sample lacks what the kernel could reclaim. */
function resourceReasons({ cpu, process: own }: ResourceSample): string[] {
  const reasons: string[] = [];
  const { window } = cpu;
  const throttledRatio = window?.throttledRatio ?? 0;
  // A limit outside the container shows no throttled periods, but the main thread's wait for a CPU.
  const waitedRatio = window?.throttledByHiddenAncestor === true ? (window.runQueueMs ?? 0) / window.ms : 0;
  if (throttledRatio > BADLY_THROTTLED) reasons.push(`throttling: ${percent(throttledRatio)} of CPU periods`);
  else if (waitedRatio > BADLY_THROTTLED)
    reasons.push(
      `throttling: by a limit outside the container; the main thread waited ${percent(waitedRatio)} of the time`,
    );
  if (own.heapUsedBytes > own.heapLimitBytes * HEAP_FULL)
    reasons.push(`memory: heap ${mb(own.heapUsedBytes)} of ${mb(own.heapLimitBytes)} MB`);
  return reasons;
}

function deferReasons({ pending }: DeferStats, maxPending: number): string[] {
  return pending < maxPending * DEFER_FULL ? [] : [`deferred work: ${pending} of ${maxPending} pending`];
}
