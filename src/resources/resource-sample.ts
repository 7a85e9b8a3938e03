import type { ResourceSample } from '../core/record.js';
import type { ResourceReading } from './cgroup-accounts.js';
import { measureWindow } from './resource-window.js';
import type { ResolvedResourcesOptions } from './resources.options.js';

/** The effective limits of a reading, overrides applied. */
export function limitsOf(reading: ResourceReading, overrides: ResolvedResourcesOptions): ResourceSample['limits'] {
  const { cpuLimit, memory, layout } = reading;
  const readable = reading.cpuUsage.from === 'cgroup' || memory !== null || cpuLimit?.heldBy != null;
  const overridden = overrides.cpuLimitCores !== null || overrides.memoryLimitBytes !== null;
  return {
    version: layout.version,
    source: overridden ? 'override' : readable ? 'cgroup' : 'process',
    trust: readable ? layout.trust : 'none',
    cpuCores: overrides.cpuLimitCores ?? cpuLimit?.limitCores ?? null,
    memoryBytes: overrides.memoryLimitBytes ?? memory?.limitBytes ?? null,
    memoryHighBytes: memory?.highBytes ?? null,
    byAncestor: {
      cpu: overrides.cpuLimitCores === null && cpuLimit !== null && cpuLimit.byAncestor,
      memory: overrides.memoryLimitBytes === null && memory !== null && memory.byAncestor,
    },
  };
}

/** A reading in its public shape, its rates since `previous`. */
export function sampleSince(
  previous: ResourceReading | null,
  reading: ResourceReading,
  options: ResolvedResourcesOptions,
): ResourceSample {
  const { cpuUsage, cpuLimit } = reading;
  const limits = limitsOf(reading, options);
  const window = measureWindow(previous, reading, limits.cpuCores, options.cpuRequestCores);
  return {
    at: Date.now(),
    limits,
    cpu: {
      usageSeconds: cpuUsage.usageSeconds,
      userSeconds: cpuUsage.userSeconds,
      systemSeconds: cpuUsage.systemSeconds,
      periods: cpuLimit?.periods ?? null,
      throttledPeriods: cpuLimit?.throttledPeriods ?? null,
      throttledSeconds: cpuLimit?.throttledSeconds ?? null,
      window: window.cpu,
    },
    memory: memoryOf(reading, options.memoryLimitBytes),
    pressure: window.pressure,
    process: reading.process,
  };
}

/** Without a cgroup the process stands for the container. */
function memoryOf(reading: ResourceReading, overrideBytes: number | null): ResourceSample['memory'] {
  const { memory, process: own } = reading;
  const workingSetBytes = memory === null ? own.rssBytes : memory.workingSetBytes;
  return {
    usageBytes: memory?.usageBytes ?? own.rssBytes,
    workingSetBytes,
    availableBytes: availableBytes(reading, workingSetBytes, overrideBytes),
    peakBytes: memory === null ? process.resourceUsage().maxRSS * 1_024 : memory.peakBytes,
    anonBytes: memory?.anonBytes ?? null,
    fileBytes: memory?.fileBytes ?? null,
    kernelBytes: memory?.kernelBytes ?? null,
    oomKills: memory?.oomKills ?? null,
  };
}

/** The least of what the limits allow; without a limit below it, what the machine has left. */
function availableBytes(
  reading: ResourceReading,
  workingSetBytes: number | null,
  overrideBytes: number | null,
): number | null {
  const headroomBytes = reading.memory?.headroomBytes ?? null;
  if (overrideBytes !== null && workingSetBytes !== null) {
    return Math.min(Math.max(0, overrideBytes - workingSetBytes), headroomBytes ?? Infinity);
  }
  if (headroomBytes !== null || reading.machineAvailableBytes !== null) {
    return headroomBytes ?? reading.machineAvailableBytes;
  }
  return reading.machineBytes === null || workingSetBytes === null
    ? null
    : Math.max(0, reading.machineBytes - workingSetBytes);
}
