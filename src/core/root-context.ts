import { AsyncResource } from 'node:async_hooks';

const root = new AsyncResource('nestjs-perf', { requireManualDestroy: true });
// It holds nothing open: tools that look for open handles are told so at once.
root.emitDestroy();

/**
 * Runs `work` in the context in which this package was loaded. What the library schedules belongs to no request: a logger
 * or tracer that follows the async context must not find one.
 */
export const inRootContext = <T>(work: () => T): T => root.runInAsyncScope(work);
