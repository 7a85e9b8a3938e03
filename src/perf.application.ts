import { Logger } from '@nestjs/common';
import { releaseOf } from './core/application-package.js';
import { monotonicMs } from './core/clock.js';
import { Recorder } from './core/recorder.js';
import { OncePerCause, safeReporter } from './core/reporter.js';
import { RequestUnits } from './request/request-unit.js';
import { Routes } from './request/routes.js';
import type { PerfApplication } from './request/application.js';
import { RequestTracker } from './request/tracker.js';
import { FEATURES, type ResolvedOptions } from './perf.options.js';
import type { SinkOption } from './perf.sinks.js';

/** Makes what an application has once. */
export function makeApplication(options: ResolvedOptions, sinks: readonly SinkOption[]): PerfApplication {
  const logger = safeReporter(new Logger('Perf'));
  const report = new OncePerCause(logger, monotonicMs);
  const routes = new Routes(report);
  const isListening = FEATURES.some(({ name, listensToRecords = false }) => listensToRecords && options[name] !== null);
  return {
    logger,
    report,
    routes,
    requests: new RequestTracker(monotonicMs, routes, report),
    recorder: new Recorder(report, options.enabled && (sinks.length > 0 || isListening)),
    nowMs: monotonicMs,
    flushTimeoutMs: options.flushTimeoutMs,
    units: new RequestUnits('unit', options.unit, report),
    enabled: options.enabled,
    release: releaseOf(options.release),
  };
}
