import { isMainThread, Worker } from 'node:worker_threads';
import { monotonicMs } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import * as beat from './beat.js';
import type { Position } from './source-maps.js';
import { IDLE_POLL_MS, type Timing } from './event-loop.options.js';
import { watchdogSource } from './watchdog-source.js';
import type { LocationsAsked, LocationsTold, LooksFail, WatchdogData } from './watchdog.thread.js';

/** How often the watchdog may look. */
export interface LookBudget {
  readonly perSecond: number;
  readonly burst: number;
}

/** A look costs the main thread about half a millisecond: this bounds what a loop pays that is blocked all the time. */
const LOOK_BUDGET: LookBudget = { perSecond: 30, burst: 90 };
const HANG_MS = 1_000;
const STOP_DEADLINE_MS = 1_000;
/** Of a bundle of Nest and all it needs they are 3 MB. */
const MAX_MAPPING_BYTES = 6_000_000;
/** Room to read a map file of two and a half times that size. */
const HEAP_MB = 128;
const FAILED_LOOKS = 3;

/**
 * Why no watchdog can run here, or null when one can. Under Node's permission model `connectToMainThread()` without
 * `--allow-inspector` aborts the process (a CHECK in inspector_agent.cc), which nothing could catch.
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

type Locations = readonly (string | null)[];

/** The thread that looks at the event loop when it is blocked. */
export class Watchdog {
  private worker: Worker | null = null;
  private readonly asked = new Map<number, (locations: Locations | null) => void>();
  private questions = 0;

  constructor(
    private readonly words: Int32Array,
    private readonly timing: Timing,
    private readonly probeName: string,
    private readonly report: OncePerCause,
    private readonly budget: LookBudget = LOOK_BUDGET,
  ) {}

  get running(): boolean {
    return this.worker !== null;
  }

  /** Starts the thread; it boots while the main thread goes on (or is blocked already). Never throws. */
  start(): void {
    try {
      this.worker = inRootContext(() => this.startThread());
      process.on('exit', this.tellToStop);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Tells the thread to end by itself, and does not wait for it: it holds no process. */
  stop(): void {
    this.tellToStop();
    process.off('exit', this.tellToStop);
    const { worker } = this;
    this.worker = null;
    this.answerAll();
    if (worker === null) return;
    // Not in this turn: a thread that is ended in the middle of a look has aborted processes.
    const timer = inRootContext(() => setTimeout(() => void worker.terminate(), STOP_DEADLINE_MS).unref());
    worker.once('exit', () => clearTimeout(timer));
  }

  /** Where positions are in the sources; null when the thread does not answer in time. Never rejects. */
  locate(positions: readonly Position[], deadlineMs: number): Promise<Locations | null> {
    const { worker } = this;
    if (worker === null || positions.length === 0 || deadlineMs <= 0) return Promise.resolve(null);
    this.questions += 1;
    const question: LocationsAsked = { id: this.questions, positions };
    return new Promise((resolve) => {
      const timer = inRootContext(() => setTimeout(() => this.answer(question.id, null), deadlineMs).unref());
      this.asked.set(question.id, (locations) => {
        clearTimeout(timer);
        resolve(locations);
      });
      // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage(question);
      Atomics.notify(this.words, beat.MODE);
    });
  }

  private startThread(): Worker {
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
    worker.on('message', (told: LocationsTold | LooksFail) => {
      if ('reason' in told) this.looksFail(told);
      else this.answer(told.id, told.locations);
    });
    return worker;
  }

  private looksFail({ reason }: LooksFail): void {
    const cause = 'event-loop blocks are measured, but not traced to requests';
    this.report.report(cause, `${cause}: the inspector does not answer (${reason.slice(0, 200)}).`);
  }

  private answer(id: number, locations: Locations | null): void {
    this.asked.get(id)?.(locations);
    this.asked.delete(id);
  }

  private answerAll(): void {
    for (const id of this.asked.keys()) this.answer(id, null);
  }

  private readonly tellToStop = (): void => {
    Atomics.store(this.words, beat.MODE, beat.STOPPED);
    Atomics.notify(this.words, beat.MODE);
  };

  private failed(error: unknown): void {
    this.worker = null;
    this.answerAll();
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
      probeName: this.probeName,
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
      maxMappingBytes: MAX_MAPPING_BYTES,
      failedLooks: FAILED_LOOKS,
    };
  }
}
