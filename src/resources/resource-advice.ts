import { MIB } from '../core/figures.js';
import type { ResourceSample } from '../core/record.js';
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

/** Share of the container's memory for V8's old spaces; the rest is for stacks, buffers, code, the young space and Node itself. */
const HEAP_SHARE = 0.75;

/** libuv starts 4 threads; more than 4 per core only take turns. */
const DEFAULT_THREADS = 4;
const THREADS_PER_CORE = 4;

/** The most that V8's young space takes beside an old one that is set: three semi-spaces. */
export function youngSpaceBytes(nodeVersion = process.versions.node): number {
  const major = Number.parseInt(nodeVersion, 10);
  return 3 * MIB * (major >= 26 ? 32 : major >= 24 ? 64 : 16);
}

/** {@link HEAP_SHARE} of the memory of one process, in MiB; less where the young space would not fit beside it, half at the least. */
export function recommendOldSpaceMb(memoryBytes: number, youngBytes = youngSpaceBytes()): number {
  const bytes = Math.max(memoryBytes / 2, Math.min(memoryBytes * HEAP_SHARE, memoryBytes - youngBytes));
  return Math.max(1, Math.floor(bytes / MIB));
}

const SHARE_FLAG = '--max-old-space-size-percentage';

/** The memory of which this Node takes a percentage; null where it has no such flag. */
const readShareBase = (): number | null =>
  process.allowedNodeEnvironmentFlags.has(SHARE_FLAG) ? process.constrainedMemory() : null;

/**
 * V8's flags for each of the processes in a container: a share of its memory, which fits after a resize as well, where this Node takes it
 * of the same limit. Where Node sees no such limit, V8's young space may not fit beside the old one: then it is made smaller.
 */
export function writeHeapFlags(
  containerBytes: number,
  { youngBytes = youngSpaceBytes(), workers = 1, shareBase = readShareBase() } = {},
): string {
  const bytes = containerBytes / workers;
  const oldSpaceMb = recommendOldSpaceMb(bytes, youngBytes);
  if (shareBase !== null && Math.abs(shareBase - containerBytes) < MIB)
    return `${SHARE_FLAG}=${Math.max(1, Math.floor((oldSpaceMb * MIB * 100) / containerBytes))}`;
  const old = `--max-old-space-size=${oldSpaceMb}`;
  if (oldSpaceMb * MIB + youngBytes <= bytes) return old;
  // Three semi-spaces, each a power of two, get at most the quarter that is no old space.
  const mostMb = (bytes * (1 - HEAP_SHARE)) / 3 / MIB;
  return `${old} --max-semi-space-size=${2 ** Math.max(0, Math.floor(Math.log2(mostMb)))}`;
}

/** A limit above what the machine has counts as no limit. */
export function advise(
  limits: Pick<ResourceSample['limits'], 'cpuCores' | 'memoryBytes' | 'memoryHighBytes'>,
  machine: Machine,
  youngBytes = youngSpaceBytes(),
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
  const oldSpaceMb = memoryBytes === null ? null : recommendOldSpaceMb(memoryBytes / workers, youngBytes);
  const why = !known
    ? 'neither a CPU limit nor the CPUs are known'
    : cores === limits.cpuCores
      ? `the CPU limit is ${round(cores)} cores`
      : `the process may run on ${round(cores)} CPUs`;
  return {
    workers,
    threadPoolSize,
    maxOldSpaceSizeMb: oldSpaceMb,
    reasons: [
      `${workers} ${workers === 1 ? 'worker' : 'workers'}: ${why}, and a worker that computes needs a whole one.`,
      `UV_THREADPOOL_SIZE=${threadPoolSize}: ${why}, and more than ${THREADS_PER_CORE} threads a core only take turns; set it in the environment before Node starts.`,
      memoryBytes === null || oldSpaceMb === null
        ? 'No --max-old-space-size: no memory limit is known.'
        : heapReason(memoryBytes, isHigh, workers, oldSpaceMb, writeHeapFlags(memoryBytes, { youngBytes, workers })),
    ],
  };
}

function heapReason(memoryBytes: number, isHigh: boolean, workers: number, oldSpaceMb: number, flags: string): string {
  const share = Math.round((oldSpaceMb * MIB * workers * 100) / memoryBytes);
  const of = `${share} % of ${round(memoryBytes / MIB)} MB${isHigh ? ' (memory.high)' : ''}${workers === 1 ? '' : `, shared by ${workers} workers`}`;
  return `${flags}: ${of}; the rest is for the young space, buffers, stacks, code and Node itself.`;
}

const round = (value: number): string => String(Math.round(value * 100) / 100);
