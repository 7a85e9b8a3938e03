import { AsyncResource } from 'node:async_hooks';

const root = new AsyncResource('nestjs-perf', { requireManualDestroy: true });
// Tools that list open handles must not count it.
root.emitDestroy();

/** Runs `work` outside of every request: what the library schedules is nobody's, and loggers follow the context. */
export const inRootContext = <T>(work: () => T): T => root.runInAsyncScope(work);
