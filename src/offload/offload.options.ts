import { isAbsolute } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  boolean,
  number,
  object,
  optional,
  optionError,
  optionalNumber,
  value,
  type Option,
  type Resolved,
} from '../core/option.js';
import { timeout } from '../core/shared-options.js';
import type { CpuAllowance } from '../ports/cpu-allowance.js';

/** Options of `offload()`. */
export interface OffloadOptions {
  /**
   * The file of the module that the workers' Nest applications are made of: its default export, or the only module class that it
   * exports. `new URL('./offload.module.js', import.meta.url)`; in CommonJS `require.resolve('./offload.module')`.
   */
  module: URL | string;
  /**
   * Worker threads at most. From 1.
   * @default one less than the cores of the container's limit (else of its request, else of the machine), from 1 to 4
   */
  threads?: number;
  /**
   * Calls that may wait for a thread; the next one throws `PERF_ERR_OFFLOAD_FULL`. From 0.
   * @default 32 for each thread
   */
  maxPending?: number;
  /**
   * A thread that has nothing to do for so long ends; milliseconds.
   * @default 60000
   */
  idleMs?: number;
  /**
   * For the old space of each worker's heap, in megabytes (2^20 bytes). A worker that needs more ends, and its call fails.
   * @default that of the process
   */
  heapLimitMb?: number;
  /**
   * Threads that start with the application and stay; `true` is 1.
   * @default 0: none starts before the first call
   */
  warm?: number | boolean;
  /**
   * Runs everything on the main thread, and starts no thread: for tests of TypeScript sources.
   * @default false
   */
  inline?: boolean;
}

/** Options of `Offloader.run()`, and of a method. */
export interface OffloadRunOptions {
  /**
   * From the call to its result, milliseconds. Then the caller gets `PERF_ERR_OFFLOAD_TIMEOUT`, and a worker that still runs it is ended.
   * @default 30000
   */
  timeoutMs?: number;
  /**
   * Moves ArrayBuffers and typed arrays of the arguments and of the result instead of copying them: their sender cannot use them any more.
   * @default false
   */
  transfer?: boolean;
}

/** Options of one method. */
export interface OffloadMethodOptions extends OffloadRunOptions {
  /**
   * Gets the arguments; `false` keeps the call on the main thread, where small input is faster.
   * @default every call is offloaded
   */
  // eslint-disable-next-line typescript/no-explicit-any -- the method's own parameters
  when?: (this: void, ...parameters: any[]) => boolean;
}

/** Default limit of worker threads. */
const MOST_THREADS = 4;
/** Waiting calls for each thread. */
const PENDING_PER_THREAD = 32;

const FILE = 'a file URL or an absolute path';

/** Reads a `file:` URL, as an object or as a string, or an absolute path. */
export const fileOption: Option<URL> = {
  expected: FILE,
  read(given, path) {
    try {
      return pathToFileURL(typeof given === 'string' && isAbsolute(given) ? given : fileURLToPath(given as URL));
    } catch {
      throw optionError(path, FILE, given);
    }
  },
};

const threads = { unit: 'a whole number of threads', integer: true, max: 1_000 };
const warmThreads = number({ ...threads, min: 0, default: 0 });
const warm: Option<number> = {
  expected: `\`true\`, \`false\` or ${warmThreads.expected}`,
  read: (given, path) => (typeof given === 'boolean' ? Number(given) : warmThreads.read(given, path)),
};

export const offloadOption = object({
  module: fileOption,
  threads: optionalNumber({ ...threads, min: 1 }),
  maxPending: optionalNumber({ unit: 'a whole number of calls', integer: true, min: 0 }),
  idleMs: timeout({ default: 60_000 }),
  heapLimitMb: optionalNumber({ unit: 'a number of megabytes' }),
  warm,
  inline: boolean({ default: false }),
});
export type ResolvedOffloadOptions = Resolved<typeof offloadOption>;

const run = {
  timeoutMs: timeout({ default: 30_000 }),
  transfer: boolean({ default: false }),
};
export const offloadRunOption = object(run);

type When = NonNullable<OffloadMethodOptions['when']>;
export const offloadMethodOption = object({
  ...run,
  when: optional(value<When>('a function of the arguments', (given) => typeof given === 'function')),
});
export type ResolvedMethodOptions = Resolved<typeof offloadMethodOption>;
export type ResolvedRunOptions = Resolved<typeof offloadRunOption>;

const UNKNOWN = { limit: null, request: null, machine: null };

/** With the numbers of threads and of waiting calls that hold here. */
export type PoolOptions = ResolvedOffloadOptions & { readonly threads: number; readonly maxPending: number };

/** The loop keeps a core for itself. `cores`: those that are known, the most binding first. */
export function computePoolSize(
  options: ResolvedOffloadOptions,
  cores: ReturnType<CpuAllowance['cores']> = UNKNOWN,
): PoolOptions {
  const known = Math.min(cores.limit ?? cores.request ?? Infinity, cores.machine ?? Infinity);
  const spare = Number.isFinite(known) ? Math.min(MOST_THREADS, Math.max(1, Math.floor(known) - 1)) : 1;
  const threads = options.threads ?? Math.max(spare, options.warm);
  const maxPending = options.maxPending ?? threads * PENDING_PER_THREAD;
  return { ...options, threads, maxPending, warm: Math.min(options.warm, threads) };
}
