import { MessageChannel } from 'node:worker_threads';
import { within } from '../core/within.js';
import type { ThreadPool, ThreadTask } from './thread-pool.js';

/** For the hooks of an application whose thread is not needed any more. */
const LEAVE_MS = 30_000;

export interface ThreadRules {
  readonly threads: number;
  /** So many stay. */
  readonly warm: number;
  /** The others end when nobody has needed them for so long. */
  readonly idleMs: number;
  /** Called at the first use. `stillborn` hears of a thread that has ended before it took any task. */
  open(stillborn: (error: Error) => void): ThreadPool;
}

/** The threads of one application: none before the first use; what is not needed ends with the hooks of its application. */
export class Threads {
  private pool: ThreadPool | null = null;
  private running = 0;
  /** Running at a time since it was last looked. */
  private needed = 0;
  /** Threads that nobody needs, whose applications are closing. */
  private readonly leaving = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly rules: ThreadRules,
    private readonly stillborn: (error: Error) => void,
    /** One more may run something. */
    private readonly freed: () => void,
  ) {}

  get count(): number {
    return this.pool?.threads.length ?? 0;
  }

  get hasFree(): boolean {
    return this.busy < this.rules.threads;
  }

  /** Rejects when the thread ends; aborted, it ends the thread. */
  async run(task: ThreadTask, signal: AbortSignal): Promise<void> {
    this.running += 1;
    this.needed = Math.max(this.needed, this.running);
    try {
      this.pool ??= this.open();
      await this.pool.run(task, signal);
    } finally {
      this.running -= 1;
    }
  }

  /** Ends those that are free now. */
  closeFree(): void {
    clearInterval(this.timer);
    this.end(this.count - this.busy);
  }

  /** Ends all: those that are free with the hooks of their applications, within the deadline. */
  async close(deadlineMs: number): Promise<void> {
    this.closeFree();
    await within(deadlineMs, () => Promise.all(this.leaving));
    await this.pool?.destroy();
  }

  private get busy(): number {
    return this.running + this.leaving.size;
  }

  private open(): ThreadPool {
    this.timer = setInterval(() => this.endIdle(), this.rules.idleMs).unref();
    return this.rules.open(this.stillborn);
  }

  private endIdle(): void {
    const { leaving, needed, rules } = this;
    this.needed = this.running;
    this.end(this.count - leaving.size - Math.max(needed, rules.warm), LEAVE_MS);
  }

  /** A thread that has closed its application must not stay: it would look free, and be told to close again. */
  private end(threads: number, limitMs?: number): void {
    const { leaving, pool } = this;
    if (pool === null) return;
    for (let i = 0; i < threads; i++) {
      const signal = limitMs === undefined ? new AbortController().signal : AbortSignal.timeout(limitMs);
      const left = endOne(pool, signal).then(() => {
        leaving.delete(left);
        this.freed();
      });
      leaving.add(left);
    }
  }
}

/** Ends one free worker with the hooks of its application. */
async function endOne(pool: ThreadPool, signal: AbortSignal): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  try {
    await pool.run({ port: port2, order: { do: 'end' } }, signal);
  } catch {
    // So it says that it has ended.
  } finally {
    port1.close();
  }
}
