import { fileURLToPath } from 'node:url';
import type { Piscina } from 'piscina';
import { optionalPeer } from '../../core/optional-peer.js';
import { inRootContext } from '../../core/root-context.js';
import type { ThreadPool, ThreadPoolOptions, ThreadPools, ThreadTask } from '../../offload/thread-pool.js';

/** The export of the program that piscina calls. */
const PROGRAM_EXPORT = 'serve';

/** Pools of piscina, which loads `program` into each thread. */
export const piscinaPools = (program: URL | null): ThreadPools => ({
  program,
  load: async () => {
    const { Piscina } = await optionalPeer('piscina', '`offload()`', () => import('piscina'));
    return (options) => new PiscinaPool(fileURLToPath(program!), options, Piscina);
  },
});

class PiscinaPool implements ThreadPool {
  private readonly pool: Piscina<ThreadTask, void>;
  /** Ids of threads that have been ready for tasks. */
  private readonly ready = new Set<number>();
  private lastError: Error | null = null;

  constructor(
    private readonly program: string,
    { threads, warm, idleMs, heapLimitMb, workerData, lost }: ThreadPoolOptions,
    PiscinaClass: typeof Piscina,
  ) {
    this.pool = inRootContext(
      () =>
        new PiscinaClass({
          minThreads: warm,
          maxThreads: threads,
          idleTimeout: idleMs,
          concurrentTasksPerWorker: 1,
          stricterFIFO: true,
          recordTiming: false,
          // Between two calls the worker's own connections and timers live on.
          atomics: 'disabled',
          workerData,
          ...(heapLimitMb === null ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
        }),
    );
    this.pool.on('workerCreate', ({ id }: { id: number }) => this.ready.add(id));
    this.pool.on('error', (error: Error) => (this.lastError = error));
    // Piscina emits the error afterwards, in the same turn.
    this.pool.on('workerDestroy', () => queueMicrotask(() => this.tellLost(lost)));
  }

  get threads(): number {
    return this.pool.threads.length;
  }

  /** Without an abort signal: tasks with one have a queue in piscina that is neither bounded nor in order. */
  run(task: ThreadTask): Promise<void> {
    const { program: filename } = this;
    const transferList = task.port === null ? [] : [task.port];
    return inRootContext(() => this.pool.run(task, { filename, name: PROGRAM_EXPORT, transferList }));
  }

  has(threadId: number): boolean {
    return this.pool.threads.some((thread) => thread.threadId === threadId);
  }

  end(threadId: number): void {
    void this.pool.threads.find((thread) => thread.threadId === threadId)?.terminate();
  }

  destroy(): Promise<void> {
    return this.pool.destroy();
  }

  /** A thread that has exited has lost its id: the one that is missing was ready, or none is. */
  private tellLost(lost: ThreadPoolOptions['lost']): void {
    const alive = new Set(this.pool.threads.map(({ threadId }) => threadId));
    const missing = [...this.ready].find((id) => !alive.has(id));
    if (missing !== undefined) this.ready.delete(missing);
    lost(this.lastError, missing !== undefined);
    this.lastError = null;
  }
}
