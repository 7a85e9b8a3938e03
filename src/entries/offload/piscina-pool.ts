import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { optionalPeer } from '../../core/optional-peer.js';
import { inRootContext } from '../../core/root-context.js';
import type { ThreadPool, ThreadPoolOptions, ThreadPools, ThreadTask } from '../../offload/thread-pool.js';

/** The export of the program that piscina calls. */
const PROGRAM_EXPORT = 'serve';

/** Threads of piscina, which loads `program` into each. */
export const piscinaPools = (program: URL | null): ThreadPools => ({
  program,
  load: async () => {
    const { Piscina } = await optionalPeer('piscina', '`offload()`', () => import('piscina'));
    return (options) => new PiscinaPool(fileURLToPath(program!), options, Piscina);
  },
});

class PiscinaPool implements ThreadPool {
  private readonly pool: Piscina<ThreadTask, void>;
  /** Also those that piscina has ended, until they have. */
  private readonly alive = new Set<Worker>();

  constructor(
    private readonly program: string,
    { threads, heapLimitMb, workerData, stillborn }: ThreadPoolOptions,
    PiscinaClass: typeof Piscina,
  ) {
    this.pool = inRootContext(
      () =>
        new PiscinaClass({
          // In the place of one that has ended, piscina would start one without an application.
          minThreads: 0,
          maxThreads: threads,
          // What is idle is ended here, with the hooks of its application: piscina would cut it off.
          idleTimeout: Infinity,
          concurrentTasksPerWorker: 1,
          stricterFIFO: true,
          recordTiming: false,
          // Between two calls the worker's own connections and timers live on.
          atomics: 'disabled',
          workerData,
          ...(heapLimitMb === null ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
        }),
    );
    this.pool.on('error', stillborn);
    this.follow();
  }

  get threads(): readonly Worker[] {
    return this.pool.threads;
  }

  async run(task: ThreadTask, signal: AbortSignal): Promise<void> {
    const { program: filename } = this;
    const ran = inRootContext(() =>
      this.pool.run(task, { filename, name: PROGRAM_EXPORT, transferList: [task.port], signal }),
    );
    this.follow();
    await ran;
  }

  async destroy(): Promise<void> {
    const ended = Array.from(
      this.alive,
      (worker) => new Promise<void>((resolve) => worker.once('exit', () => resolve())),
    );
    await this.pool.destroy();
    await Promise.all(ended);
  }

  private follow(): void {
    for (const worker of this.pool.threads) {
      if (this.alive.has(worker)) continue;
      this.alive.add(worker);
      worker.once('exit', () => this.alive.delete(worker));
    }
  }
}
