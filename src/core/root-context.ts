import { AsyncResource } from 'node:async_hooks';

const root = new AsyncResource('nestjs-perf', { requireManualDestroy: true });
// It holds nothing open: tools that look for open handles are told so at once.
root.emitDestroy();

/** Runs `work` outside of every request: what the library schedules is nobody's, and loggers follow the context. */
export const inRootContext = <T>(work: () => T): T => root.runInAsyncScope(work);
