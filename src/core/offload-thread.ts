import { isMainThread, workerData } from 'node:worker_threads';
import { decoratedMethods } from './method-metadata.js';

const OFFLOAD_DATA = 'nestjs-perf:offload';
const OFFLOAD_METADATA = 'perf:offload';

/** Data of the main thread for a thread that `offload()` starts. */
export interface OffloadThread {
  /** The file of the workers' module. */
  readonly module: string;
  /** The levels of the main thread's logger. */
  readonly logLevels: readonly string[];
}

export const putOffloadOptions = (prototype: object, name: string, options: object): void =>
  Reflect.defineMetadata(OFFLOAD_METADATA, options, prototype, name);

/** Options of the method that an instance has under this name; undefined where an override has none. */
export function findOffloadOptions(instance: object, name: string): unknown {
  let owner = Reflect.getPrototypeOf(instance);
  while (owner !== null && !Object.hasOwn(owner, name)) owner = Reflect.getPrototypeOf(owner);
  return owner === null ? undefined : Reflect.getOwnMetadata(OFFLOAD_METADATA, owner, name);
}

export const offloadedOn = (prototype: object) => decoratedMethods(OFFLOAD_METADATA, prototype);

/** The `workerData` of such a thread. */
export const offloadData = (thread: OffloadThread) => ({ [OFFLOAD_DATA]: thread });

/** Null in every thread that `offload()` has not started. */
export function offloadThread(): OffloadThread | null {
  const data = workerData as Record<string, unknown> | null;
  if (isMainThread || typeof data !== 'object' || data === null) return null;
  return (data[OFFLOAD_DATA] as OffloadThread | undefined) ?? null;
}

/** Whether this is a worker of `offload()`, where an application measures and serves nothing. */
export const inOffloadThread = (): boolean => offloadThread() !== null;
