// One variant of the event-loop benchmark: `latency`, `stack`, `store`, `context`, `safepoints`, `default`, or one of the async_hooks techniques.
import { createHook, executionAsyncId } from 'node:async_hooks';
import { PerfModule } from 'nestjs-perf';
import { serveApi } from '../overhead/application.mjs';

/** What is not asked about here. */
const OTHERS = { compression: false, defer: false, resources: false };
const OPTIONS = {
  latency: { ...OTHERS, context: false, eventLoop: false },
  // Blocks told apart by named async frames: what an application gets that asks for nothing which needs the store.
  stack: { ...OTHERS, context: false },
  // The store alone, which features that need it pay for anyway; and blocks on top of it.
  context: { ...OTHERS, eventLoop: false, context: true },
  store: { ...OTHERS, context: true },
  default: undefined,
  safepoints: { ...OTHERS, context: false, eventLoop: { safepoints: true } },
};

/** As blocked-at 1.x does it: a stack for each async resource, times around each callback. */
function stacksForEveryResource() {
  const stacks = new Map();
  let startedMs = 0;
  createHook({
    init(asyncId) {
      const holder = {};
      Error.captureStackTrace(holder);
      stacks.set(asyncId, holder.stack);
    },
    before() {
      startedMs = performance.now();
    },
    after(asyncId) {
      if (performance.now() - startedMs > 50) console.warn(stacks.get(asyncId));
    },
    destroy: (asyncId) => stacks.delete(asyncId),
  }).enable();
}

/** Times around each callback, and who it was from a context store: no stacks. */
function timesOfEveryCallback() {
  let startedMs = 0;
  createHook({
    before() {
      startedMs = performance.now();
    },
    after() {
      if (performance.now() - startedMs > 50) console.warn(executionAsyncId());
    },
  }).enable();
}

const [which] = process.argv.slice(2);
if (which === 'async-hooks-stacks') stacksForEveryResource();
if (which === 'async-hooks-times') timesOfEveryCallback();
await serveApi({ imports: which in OPTIONS ? [PerfModule.forRoot(OPTIONS[which])] : [] });
