import { availableParallelism } from 'node:os';

/**
 * How many compressions may occupy the thread pool: one thread always stays free for files, DNS and crypto, and more
 * than there are cores would only queue inside the kernel.
 */
export function compressionSlots(
  threadPoolSize = threadPoolSizeOf(process.env),
  cores = availableParallelism(),
): number {
  return Math.max(1, Math.min(threadPoolSize - 1, cores));
}

/** libuv's own reading of `UV_THREADPOOL_SIZE`: 4 by default, at least 1, at most 1024. */
export function threadPoolSizeOf(environment: Readonly<Record<string, string | undefined>>): number {
  const given = environment['UV_THREADPOOL_SIZE'];
  if (given === undefined) return 4;
  const size = Number.parseInt(given, 10);
  return Number.isNaN(size) ? 1 : Math.min(Math.max(size, 1), 1024);
}

/**
 * Lets only so many compressions run at once; the others wait in order. Without it, 20 bodies of 3 MB put 30 ms on every
 * `fs.stat` of the process, because they share one pool.
 */
export class Governor {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly slots: number) {}

  /** Whether work that arrives now would wait: it should then be made cheap. */
  get full(): boolean {
    return this.running >= this.slots;
  }

  get queued(): number {
    return this.waiting.length;
  }

  /** Runs `work` when a slot is free; a failure of it frees the slot too. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.full) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      return await work();
    } finally {
      // The slot is handed over, not given back: a newcomer cannot overtake who waits.
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }
}
