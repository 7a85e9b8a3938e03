import { isAbsolute } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  boolean,
  number,
  object,
  optional,
  optionalNumber,
  value,
  type Option,
  type Resolved,
} from '../core/option.js';
import { timeout } from '../core/shared-options.js';

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
  read: (given, path) => {
    const accepted = value<URL | string>(FILE, isFile).read(given, path);
    return typeof accepted === 'string' && isAbsolute(accepted) ? pathToFileURL(accepted) : new URL(accepted);
  },
};

function isFile(given: unknown): boolean {
  if (typeof given === 'string' && isAbsolute(given)) return true;
  try {
    return fileURLToPath(given as URL | string) !== '';
  } catch {
    return false;
  }
}

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

/** Cores that are known, the most binding first. */
export interface Cores {
  limit: number | null;
  request: number | null;
  machine: number | null;
}

/** How many threads a container should have: the loop keeps a core for itself. */
export function threadsFor({ limit, request, machine }: Cores): number {
  const cores = Math.min(limit ?? request ?? Infinity, machine ?? Infinity);
  return Number.isFinite(cores) ? Math.min(MOST_THREADS, Math.max(1, Math.floor(cores) - 1)) : 1;
}

/** How many threads and waiting calls there may be. */
export interface PoolRules {
  readonly threads: number;
  readonly maxPending: number;
  /** Threads that are started with the application and stay. */
  readonly warm: number;
}

export function computePoolSize(options: ResolvedOffloadOptions, cores: Cores): PoolRules {
  const threads = options.threads ?? Math.max(threadsFor(cores), options.warm);
  const warm = Math.min(options.warm, threads);
  return { threads, maxPending: options.maxPending ?? threads * PENDING_PER_THREAD, warm };
}
