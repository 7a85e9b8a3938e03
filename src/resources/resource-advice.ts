import { MIB } from '../core/figures.js';
import type { ResourceSample } from '../core/record.js';
import type { Machine } from './machine.js';

/** What to size by the container's limits, and why. */
export interface ResourceAdvice {
  /** Worker processes or worker threads that compute. */
  workers: number;
  /** For `UV_THREADPOOL_SIZE`, which libuv reads once, at the start. */
  threadPoolSize: number;
  /** For `--max-old-space-size` of each worker, in its unit (2^20 bytes); null without a memory limit. */
  maxOldSpaceSizeMb: number | null;
  /** One sentence per figure. */
  reasons: readonly string[];
}

/** Share of the container's memory for V8's old spaces; the rest is for stacks, buffers, code, new space and Node itself. */
export const HEAP_SHARE = 0.75;

/** libuv starts 4 threads; more than 4 per core only take turns. */
const DEFAULT_THREADS = 4;
const THREADS_PER_CORE = 4;

/** A limit above what the machine has is none. */
export function advise(
  limits: Pick<ResourceSample['limits'], 'cpuCores' | 'memoryBytes'>,
  machine: Machine,
): ResourceAdvice {
  const cores = Math.min(limits.cpuCores ?? Infinity, machine.cpus ?? Infinity);
  const known = Number.isFinite(cores);
  const workers = known ? Math.max(1, Math.floor(cores)) : 1;
  const threadPoolSize = known
    ? Math.max(2, Math.min(DEFAULT_THREADS, Math.ceil(cores * THREADS_PER_CORE)))
    : DEFAULT_THREADS;
  const memoryBytes =
    limits.memoryBytes === null ? null : Math.min(limits.memoryBytes, machine.memoryBytes ?? Infinity);
  const maxOldSpaceSizeMb =
    memoryBytes === null ? null : Math.max(1, Math.floor((memoryBytes * HEAP_SHARE) / workers / MIB));
  const why = !known
    ? 'neither a CPU limit nor the CPUs are known'
    : cores === limits.cpuCores
      ? `the CPU limit is ${round(cores)} cores`
      : `the process may run on ${round(cores)} CPUs`;
  return {
    workers,
    threadPoolSize,
    maxOldSpaceSizeMb,
    reasons: [
      `${workers} ${workers === 1 ? 'worker' : 'workers'}: ${why}, and a worker that computes needs a whole one.`,
      `UV_THREADPOOL_SIZE=${threadPoolSize}: ${why}, and more than ${THREADS_PER_CORE} threads a core only take turns; set it in the environment before Node starts.`,
      memoryBytes === null
        ? 'No --max-old-space-size: no memory limit is known.'
        : `--max-old-space-size=${maxOldSpaceSizeMb}: ${HEAP_SHARE * 100} % of ${round(memoryBytes / MIB)} MB${workers === 1 ? '' : `, shared by ${workers} workers`}; the rest is for buffers, stacks, code and Node itself.`,
    ],
  };
}

const round = (value: number): string => String(Math.round(value * 100) / 100);
