import type { ResourceSample } from '../core/record.js';
import { UNKNOWN_THROTTLING } from './cgroup/cpu.js';
import type { ResourceReading } from './resource-reading.js';
import { windowBetween } from './resource-window.js';
import type { ResolvedResourcesOptions } from './resources.options.js';

/** The effective limits of a reading, overrides applied. */
export function findLimits(reading: ResourceReading, overrides: ResolvedResourcesOptions): ResourceSample['limits'] {
  const { cpuLimit, memory, layout } = reading;
  const { cpuLimitCores, memoryLimitBytes } = overrides;
  const [lowest] = cpuLimit.quotas;
  const isReadable = reading.isCgroupUsage || memory !== null || lowest !== undefined;
  const isOverridden = cpuLimitCores !== null || memoryLimitBytes !== null;
  return {
    version: layout.version,
    source: isOverridden ? 'override' : isReadable ? 'cgroup' : 'process',
    trust: isReadable ? layout.trust : 'none',
    cpuCores: cpuLimitCores ?? lowest?.cores ?? null,
    memoryBytes: memoryLimitBytes ?? memory?.limitBytes ?? null,
    memoryHighBytes: memory?.highBytes ?? null,
    byAncestor: {
      cpu: cpuLimitCores === null && lowest?.isAncestor === true,
      memory: memoryLimitBytes === null && memory?.byAncestor === true,
    },
  };
}

type MemoryLimits = Pick<ResourceSample['limits'], 'memoryBytes' | 'memoryHighBytes'>;

/** Bytes that may be used: the kernel kills above `memory.max`, and throttles above `memory.high`. Null: no limit. */
export function findMemoryBound({ memoryBytes, memoryHighBytes }: MemoryLimits): number | null {
  const bytes = Math.min(memoryBytes ?? Infinity, memoryHighBytes ?? Infinity);
  return bytes === Infinity ? null : bytes;
}

export const isHighFirst = (limits: MemoryLimits): boolean => findMemoryBound(limits) !== limits.memoryBytes;

/** A reading in its public shape, its rates since `previous`. */
export function sampleSince(
  previous: ResourceReading | null,
  reading: ResourceReading,
  options: ResolvedResourcesOptions,
): ResourceSample {
  const limits = findLimits(reading, options);
  const window = windowBetween(previous, reading, limits.cpuCores, options.cpuRequestCores);
  return {
    at: Date.now(),
    limits,
    // Counters are those of the lowest limit, whichever is hit: a counter of now this cgroup, now that, would be none.
    cpu: { ...reading.cpuUsage, ...(reading.cpuLimit.quotas[0]?.throttling ?? UNKNOWN_THROTTLING), window: window.cpu },
    memory: readFigures(reading, options.memoryLimitBytes),
    pressure: window.pressure,
    process: reading.process,
  };
}

/** Memory figures of the cgroup; those of the process when no cgroup has any. */
function readFigures(reading: ResourceReading, overrideBytes: number | null): ResourceSample['memory'] {
  const { memory } = reading;
  const { rssBytes } = reading.process;
  const figures = memory?.figures ?? {
    usageBytes: rssBytes,
    workingSetBytes: rssBytes,
    peakBytes: process.resourceUsage().maxRSS * 1_024,
    anonBytes: null,
    fileBytes: null,
    kernelBytes: null,
    oomKills: null,
  };
  const usedBytes = figures.workingSetBytes ?? figures.usageBytes ?? rssBytes;
  return { ...figures, availableBytes: leastLeft(reading, overrideBytes, usedBytes, memory?.headroomBytes) };
}

/** Bytes left before the kernel kills or throttles: it reclaims file pages first, which `availableBytes` may count as used. */
export const memoryLeft = (reading: ResourceReading, overrideBytes: number | null): number | null =>
  leastLeft(reading, overrideBytes, reading.memory?.heldBytes ?? reading.process.rssBytes, reading.memory?.leftBytes);

function leastLeft(
  { machine, machineAvailableBytes }: ResourceReading,
  overrideBytes: number | null,
  usedBytes: number,
  headroomBytes: number | null | undefined,
): number | null {
  const subtractUse = (limitBytes: number | null): number => (limitBytes === null ? Infinity : limitBytes - usedBytes);
  const least = Math.min(
    subtractUse(overrideBytes),
    headroomBytes ?? Infinity,
    machineAvailableBytes ?? subtractUse(machine.memoryBytes),
  );
  return least === Infinity ? null : Math.max(0, least);
}
