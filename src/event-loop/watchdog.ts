import { isMainThread, Worker } from 'node:worker_threads';
import { monotonicMs } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import * as beat from './beat.js';
import { IDLE_POLL_MS, type Timing } from './timing.js';
import { watchdogSource } from './watchdog-source.js';
import type { WatchdogData } from './watchdog.worker.js';

/** How often the watchdog may look. */
export interface LookBudget {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * A look costs the main thread about half a millisecond, so this bounds the tax on a loop that is blocked all the time to
 * 1.5 %. A first long block, or a few in a row, are looked at without thrift.
 */
const LOOK_BUDGET: LookBudget = { perSecond: 30, burst: 90 };
const HANG_MS = 1_000;
const STOP_DEADLINE_MS = 1_000;
/** A map that is being read takes several times its size, and the thread's heap is {@link HEAP_MB}. */
const MAX_MAP_BYTES = 1_000_000;
const HEAP_MB = 24;

/**
 * Why no watchdog can run here, or null when one can. Without it blocks are still measured, not attributed.
 * Under Node's permission model `connectToMainThread()` without `--allow-inspector` aborts the process (a CHECK in
 * inspector_agent.cc), which nothing could catch.
 */
export function watchdogObstacle(): string | null {
  if (!isMainThread) return 'the application runs in a worker thread';
  if (!process.features.inspector) return 'this Node was built without the inspector';
  const permission = (process as { permission?: { has(scope: string): boolean } }).permission;
  if (permission !== undefined && !(permission.has('inspector') && permission.has('worker'))) {
    return 'the permission model is on without `--allow-inspector` and `--allow-worker`';
  }
  return null;
}

/** The thread that looks at the event loop when it stands still. */
export class Watchdog {
  private worker: Worker | null = null;
  private ended: Promise<void> | null = null;

  constructor(
    private readonly words: Int32Array,
    private readonly timing: Timing,
    private readonly channelName: string,
    private readonly report: OncePerCause,
    private readonly budget: LookBudget = LOOK_BUDGET,
  ) {}

  get running(): boolean {
    return this.worker !== null;
  }

  /** Starts the thread; it boots while the main thread goes on (or is blocked already). Never throws. */
  start(): void {
    try {
      const worker = new Worker(watchdogSource(), {
        eval: true,
        name: 'nestjs-perf watchdog',
        workerData: this.data(),
        // Nothing of the application's own preloads, loaders or environment: the thread needs none of it.
        env: {},
        execArgv: [],
        argv: [],
        resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
      });
      worker.unref();
      worker.on('error', (error) => this.failed(error));
      this.ended = new Promise((resolve) => worker.once('exit', () => resolve()));
      this.worker = worker;
      process.on('exit', this.tellToStop);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Lets the thread end by itself; ends it when it does not. */
  async stop(): Promise<void> {
    const { worker } = this;
    this.tellToStop();
    process.off('exit', this.tellToStop);
    if (worker === null) return;
    this.worker = null;
    const timer = setTimeout(() => void worker.terminate(), STOP_DEADLINE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  private readonly tellToStop = (): void => {
    Atomics.store(this.words, beat.MODE, beat.STOPPED);
    Atomics.notify(this.words, beat.MODE);
  };

  private failed(error: unknown): void {
    this.worker = null;
    const reason = error instanceof Error ? error.message : String(error);
    const cause = `the event-loop watchdog ended: ${reason.slice(0, 200)}`;
    this.report.report(cause, `${cause}. Blocks are still measured, but no longer traced to requests.`);
  }

  private data(): WatchdogData {
    const { timing } = this;
    return {
      memory: this.words.buffer,
      word: {
        seq: beat.SEQ,
        beatAt: beat.BEAT_AT,
        mode: beat.MODE,
        polls: beat.POLLS,
        starvedUs: beat.STARVED_US,
        runDelayUs: beat.RUN_DELAY_US,
      },
      mode: { armed: beat.ARMED, stopped: beat.STOPPED },
      unitsPerMs: beat.UNITS_PER_MS,
      originMs: Number(process.hrtime.bigint()) / 1e6 - monotonicMs(),
      channelName: this.channelName,
      tickMs: timing.tickMs,
      idlePollMs: IDLE_POLL_MS,
      suspectMs: timing.suspectMs,
      idleSuspectMs: timing.idleTickMs + timing.suspectMs,
      sampleMs: timing.sampleMs,
      samplesPerSecond: this.budget.perSecond,
      sampleBurst: this.budget.burst,
      hangMs: HANG_MS,
      schedstat: process.platform === 'linux' ? `/proc/${process.pid}/task/${process.pid}/schedstat` : null,
      workingDirectory: process.cwd(),
      maxMapBytes: MAX_MAP_BYTES,
    };
  }
}
