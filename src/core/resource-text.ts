import { mb, percent } from './figures.js';
import type { ResourceSample } from './record.js';

/** A sample in one line: `0.50 of 2 cores, 38 % of periods throttled, 212 of 512 MB`. What is unknown is left out. */
export function describeResources({ cpu, memory, limits }: ResourceSample): string {
  const { window } = cpu;
  const parts: string[] = [];
  if (window !== null) parts.push(`${window.usageCores.toFixed(2)}${ofLimit(limits.cpuCores)} cores`);
  if (window?.throttledRatio != null) parts.push(`${percent(window.throttledRatio)} of periods throttled`);
  if (window?.throttledByHiddenAncestor === true) parts.push('throttled by a limit outside the container');
  const usedBytes = memory.workingSetBytes ?? memory.usageBytes;
  if (usedBytes !== null) {
    const limitMb = limits.memoryBytes === null ? null : mb(limits.memoryBytes);
    parts.push(`${mb(usedBytes)}${ofLimit(limitMb)} MB`);
  }
  return parts.join(', ');
}

const ofLimit = (limit: number | null): string => (limit === null ? '' : ` of ${Math.round(limit * 100) / 100}`);
