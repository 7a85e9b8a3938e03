import { totalmem } from 'node:os';
import { Logger } from '@nestjs/common';
import { findRelease } from './core/application-package.js';
import { monotonicMs } from './core/clock.js';
import { Recorder } from './core/recorder.js';
import { OncePerCause, safeReporter } from './core/reporter.js';
import { RequestUnits } from './request/request-unit.js';
import { Routes } from './request/routes.js';
import type { PerfApplication } from './request/application.js';
import { RequestTracker } from './request/tracker.js';
import { FEATURES, type ResolvedOptions } from './perf.options.js';
import type { SinkOption } from './perf.sinks.js';
import { ResourceReader } from './resources/resource-reading.js';

/** Makes the {@link PerfApplication} that all features of one application share. */
export function makeApplication(options: ResolvedOptions, sinks: readonly SinkOption[]): PerfApplication {
  const logger = safeReporter(new Logger('Perf'));
  const report = new OncePerCause(logger, monotonicMs);
  const routes = new Routes();
  const room = cacheRoom(options);
  const isRead = sinks.length > 0 || FEATURES.some(({ name, hasSink = false }) => hasSink && options[name] !== null);
  return {
    logger,
    report,
    routes,
    requests: new RequestTracker(monotonicMs, routes, report),
    recorder: new Recorder(report, options.enabled && isRead),
    nowMs: monotonicMs,
    units: new RequestUnits('unit', options.unit, report),
    enabled: options.enabled,
    release: findRelease(options.release),
    cacheBytes: (ownBytes) => Math.min(ownBytes, room()),
  };
}

/** Encoded bodies, cached values and history: each may use a third of the share. */
const CACHES = 3;

/** Bytes for each cache, of the container's memory limit, or of the machine's memory. Read at the first call. */
function cacheRoom({ memory, resources }: ResolvedOptions): () => number {
  let bytes: number | null = null;
  return () => (bytes ??= Math.floor((memory.share * memoryBytes(resources)) / CACHES));
}

function memoryBytes(resources: ResolvedOptions['resources']): number {
  const { memory, machine } = new ResourceReader('/', monotonicMs).read();
  const limits = [
    resources?.memoryLimitBytes ?? memory?.limitBytes,
    memory?.highBytes,
    machine.memoryBytes ?? totalmem(),
  ];
  return Math.min(...limits.map((bytes) => bytes ?? Infinity));
}
