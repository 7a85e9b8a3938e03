import { MIB } from '../core/figures.js';
import type { ResourceSample } from '../core/record.js';
import { percentageBase } from './heap-spaces.js';
import type { Machine } from './machine.js';
import { isHighFirst, findMemoryBound } from './resource-sample.js';

/** Recommended sizes for the container's limits, with reasons. */
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

/** V8's flags for one process. */
export interface HeapFlags {
  readonly oldSpaceMb: number;
  /** The old space as a share of the container's memory, which survives a resize; null where this Node cannot take it. */
  readonly oldSpacePercentage: number | null;
  /** Semi-space size in MiB; null unless the young space would take more than half of the memory. */
  readonly semiSpaceMb: number | null;
}

/**
 * The old space gets {@link HEAP_SHARE}, and less where the young space would not fit beside it.
 * @param workers Processes that share `memoryBytes`.
 * @param baseBytes What Node takes percentages of; null where it takes none.
 */
export function heapFlags(
  containerBytes: number,
  youngBytes: number,
  workers = 1,
  baseBytes: number | null = percentageBase(),
): HeapFlags {
  const memoryBytes = containerBytes / workers;
  // Node may see another limit than the container's.
  const takesPercentage = baseBytes !== null && Math.abs(baseBytes - containerBytes) < MIB;
  const percentage = (bytes: number): number | null =>
    takesPercentage ? Math.max(1, Math.floor((bytes * 100) / containerBytes)) : null;
  const oldBytes = Math.min(memoryBytes * HEAP_SHARE, memoryBytes - youngBytes);
  if (oldBytes >= memoryBytes / 2)
    return { oldSpaceMb: megabytes(oldBytes), oldSpacePercentage: percentage(oldBytes), semiSpaceMb: null };
  // Three semi-spaces, each a power of two, get the quarter that is left to the heap.
  const semiSpaceMb = 2 ** Math.floor(Math.log2(megabytes((memoryBytes * (HEAP_SHARE - 0.5)) / 3)));
  const oldSpacePercentage = percentage(memoryBytes / 2);
  return { oldSpaceMb: megabytes(memoryBytes / 2), oldSpacePercentage, semiSpaceMb };
}

const megabytes = (bytes: number): number => Math.max(1, Math.floor(bytes / MIB));

export function flagsText({ oldSpaceMb, oldSpacePercentage, semiSpaceMb }: HeapFlags): string {
  const old =
    oldSpacePercentage === null
      ? `--max-old-space-size=${oldSpaceMb}`
      : `--max-old-space-size-percentage=${oldSpacePercentage}`;
  return semiSpaceMb === null ? old : `${old} --max-semi-space-size=${semiSpaceMb}`;
}

/**
 * A limit above what the machine has counts as no limit.
 * @param youngBytes What V8's young space may take beside the old one.
 */
export function advise(
  limits: Pick<ResourceSample['limits'], 'cpuCores' | 'memoryBytes' | 'memoryHighBytes'>,
  machine: Machine,
  youngBytes: number,
  baseBytes = percentageBase(),
): ResourceAdvice {
  const cores = Math.min(limits.cpuCores ?? Infinity, machine.cpus ?? Infinity);
  const known = Number.isFinite(cores);
  const workers = known ? Math.max(1, Math.floor(cores)) : 1;
  const threadPoolSize = known
    ? Math.max(2, Math.min(DEFAULT_THREADS, Math.ceil(cores * THREADS_PER_CORE)))
    : DEFAULT_THREADS;
  const boundBytes = findMemoryBound(limits);
  const memoryBytes = boundBytes === null ? null : Math.min(boundBytes, machine.memoryBytes ?? Infinity);
  const isHigh = memoryBytes === boundBytes && isHighFirst(limits);
  const flags = memoryBytes === null ? null : heapFlags(memoryBytes, youngBytes, workers, baseBytes);
  const why = !known
    ? 'neither a CPU limit nor the CPUs are known'
    : cores === limits.cpuCores
      ? `the CPU limit is ${round(cores)} cores`
      : `the process may run on ${round(cores)} CPUs`;
  return {
    workers,
    threadPoolSize,
    maxOldSpaceSizeMb: flags?.oldSpaceMb ?? null,
    reasons: [
      `${workers} ${workers === 1 ? 'worker' : 'workers'}: ${why}, and a worker that computes needs a whole one.`,
      `UV_THREADPOOL_SIZE=${threadPoolSize}: ${why}, and more than ${THREADS_PER_CORE} threads a core only take turns; set it in the environment before Node starts.`,
      memoryBytes === null || flags === null
        ? 'No --max-old-space-size: no memory limit is known.'
        : heapReason(memoryBytes, isHigh, workers, youngBytes, flags),
    ],
  };
}

function heapReason(
  memoryBytes: number,
  isHigh: boolean,
  workers: number,
  youngBytes: number,
  flags: HeapFlags,
): string {
  const isShare = flags.oldSpaceMb === megabytes((memoryBytes / workers) * HEAP_SHARE);
  const share = isShare ? HEAP_SHARE * 100 : Math.round((flags.oldSpaceMb * MIB * workers * 100) / memoryBytes);
  const of = `${share} % of ${round(memoryBytes / MIB)} MB${isHigh ? ' (memory.high)' : ''}${workers === 1 ? '' : `, shared by ${workers} workers`}`;
  const young = isShare ? '' : `the young space, which may take ${round(youngBytes / MIB)} MB unless told, `;
  return `${flagsText(flags)}: ${of}; the rest is for ${young}buffers, stacks, code and Node itself.`;
}

const round = (value: number): string => String(Math.round(value * 100) / 100);
