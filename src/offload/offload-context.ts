import { AsyncLocalStorage } from 'node:async_hooks';
import type { OffloadContext } from './thread-pool.js';

const contexts = new AsyncLocalStorage<OffloadContext>();

/** Returns the context of the call that this code runs for, in a worker. Null on the main thread. */
export const offloadContext = (): OffloadContext | null => contexts.getStore() ?? null;

export const withOffloadContext = <T>(context: OffloadContext, work: () => T): T => contexts.run(context, work);
