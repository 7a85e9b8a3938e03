import { fileURLToPath } from 'node:url';
import { optionalPeer } from '../../core/optional-peer.js';
import type { ThreadPools } from '../../offload/thread-pool.js';

/** Pools of piscina, which loads `program` into each thread. */
export const piscinaPools = (program: URL | null): ThreadPools => ({
  program,
  async load() {
    const { Piscina } = await optionalPeer('piscina', '`offload()`', () => import('piscina'));
    return ({ threads, warm, idleMs, heapLimitMb }, workerData) =>
      new Piscina({
        filename: fileURLToPath(program!),
        name: 'serve',
        minThreads: warm,
        maxThreads: threads,
        idleTimeout: idleMs,
        concurrentTasksPerWorker: 1,
        recordTiming: false,
        // Between two calls the worker's own connections and timers live on.
        atomics: 'disabled',
        workerData,
        ...(heapLimitMb === null ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
      });
  },
});
