import type { BlockRecord, RequestRecord, ResourceRecord } from '../../core/record.js';
import { UNIT_OF_EXPERIMENTS } from '../../ports/users.js';
import type { StatsigEvent } from './client.js';
import { label, labelEnd, buildMetadata, limitUser } from './limits.js';

/** `api_request`: one request; value = milliseconds. */
export function requestEvent(record: RequestRecord, pod: string, sampleRate: number): StatsigEvent {
  const own = {
    method: record.method,
    route: label(record.route),
    status: record.status,
    handler: record.handler === null ? null : label(record.handler),
    outcome: record.outcome,
    pod,
    ...(record.time === null ? {} : { upstreamMs: record.time.upstreamMs }),
  };
  const unit = UNIT_OF_EXPERIMENTS.get(record) ?? record.unit;
  return {
    name: 'api_request',
    at: Math.round(record.startedAt + record.durationMs),
    user: unit === null ? { userID: pod } : limitUser(unit),
    value: record.durationMs,
    metadata: buildMetadata(sampleRate < 1 ? { ...own, sampleRate } : own, record.variants),
  };
}

/** `event_loop_block`: value = milliseconds. The route is the culprit's, so it is null unless that is proven. */
export function blockEvent(record: BlockRecord, pod: string): StatsigEvent {
  return {
    name: 'event_loop_block',
    at: Math.round(record.startedAt + record.durationMs),
    user: { userID: pod },
    value: record.durationMs,
    metadata: {
      route: record.request === null ? null : label(record.request.route),
      cause: record.cause,
      location: record.location === null ? null : labelEnd(record.location),
      pod,
    },
  };
}

/** `pod_resources`: value = CPU cores used since the sample before; null for the first one. */
export function resourceEvent({ sample }: ResourceRecord, pod: string): StatsigEvent {
  const { workingSetBytes } = sample.memory;
  const limitBytes = sample.limits.memoryBytes;
  return {
    name: 'pod_resources',
    at: Math.round(sample.at),
    user: { userID: pod },
    value: sample.cpu.window?.usageCores ?? null,
    metadata: {
      pod,
      cpuUtilization: sample.cpu.window?.utilization ?? null,
      throttledRatio: sample.cpu.window?.throttledRatio ?? null,
      workingSetBytes,
      memoryUtilization: workingSetBytes === null || limitBytes === null ? null : workingSetBytes / limitBytes,
      rssBytes: sample.process.rssBytes,
      heapUsedBytes: sample.process.heapUsedBytes,
    },
  };
}
