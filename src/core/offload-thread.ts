import { isMainThread, workerData } from 'node:worker_threads';
import { decoratedMethods } from './method-metadata.js';

/** In the `workerData` of a thread that `offload()` has started: its file of the application's module. */
export const OFFLOAD_DATA = 'nestjs-perf:offload';
const OFFLOAD_METADATA = 'perf:offload';

export const putOffloadOptions = (prototype: object, name: string, options: object): void =>
  Reflect.defineMetadata(OFFLOAD_METADATA, options, prototype, name);

export const offloadedOn = (prototype: object) => decoratedMethods(OFFLOAD_METADATA, prototype);

/** The module's file, in a thread that `offload()` has started; null in every other. */
export function offloadModule(): string | null {
  const data = workerData as Record<string, unknown> | null;
  const file = isMainThread || typeof data !== 'object' || data === null ? undefined : data[OFFLOAD_DATA];
  return typeof file === 'string' ? file : null;
}

/** Whether this is a worker of `offload()`, where an application measures and serves nothing. */
export const inOffloadThread = (): boolean => offloadModule() !== null;
