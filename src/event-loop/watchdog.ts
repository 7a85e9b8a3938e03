import { isMainThread, Worker } from 'node:worker_threads';
import { monotonicMs } from '../core/clock.js';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import { listenShared } from '../core/shared-listener.js';
import * as beat from './beat.js';
import type { Position } from './source-maps.js';
import type { Timing } from './event-loop.options.js';
import { watchdogSource } from './watchdog-source.js';
import type { LocationsAsked, Told, WatchdogData } from './watchdog.thread.js';

const STOP_DEADLINE_MS = 1_000;
/** Room to read a map file of two and a half times the mappings that are kept. */
const HEAP_MB = 128;

/**
 * Why no watchdog can run here, or null when one can. Under Node's permission model `connectToMainThread()` without
 * `--allow-inspector` aborts the process (a CHECK in inspector_agent.cc), which nothing could catch.
 */
export function watchdogObstacle(): string | null {
  if (!isMainThread) return 'the application runs in a worker thread';
  if (!process.features.inspector) return 'this Node was built without the inspector';
  const permission = (process as { permission?: { has(scope: string): boolean } }).permission;
  const missing = ['inspector', 'worker'].filter((scope) => permission?.has(scope) === false);
  if (missing.length === 0) return null;
  if (!process.allowedNodeEnvironmentFlags.has('--allow-inspector'))
    return 'the permission model is on, and this version of Node has no `--allow-inspector`';
  return `the permission model is on without ${missing.map((scope) => `\`--allow-${scope}\``).join(' and ')}`;
}

/** Of the main thread's clock on the kernel's, which all threads read. */
const ORIGIN_MS = Number(process.hrtime.bigint()) / 1e6 - monotonicMs();

type Locations = readonly (string | null)[];

/** The thread that looks at the event loop when it is blocked. */
export class Watchdog {
  private worker: Worker | null = null;
  private readonly asked = new Map<number, (locations: Locations | null) => void>();
  private questions = 0;
  private ignoreExit = (): void => {};

  constructor(
    private readonly words: Int32Array,
    private readonly timing: Timing,
    private readonly probeName: string,
    private readonly report: OncePerCause,
  ) {}

  get running(): boolean {
    return this.worker !== null;
  }

  /** Starts the thread, where one can run; it boots while the main thread goes on (or is blocked already). Never throws. */
  start(): void {
    const obstacle = watchdogObstacle();
    if (obstacle !== null) return this.notTraced(obstacle);
    try {
      this.worker = inRootContext(() => this.startThread());
      this.ignoreExit = listenShared(process, 'exit', this.tellToStop);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Tells the thread to end by itself, and does not wait for it: it holds no process. */
  stop(): void {
    this.tellToStop();
    this.ignoreExit();
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
      worker.postMessage(question);
      Atomics.notify(this.words, beat.MODE);
    });
  }

  private startThread(): Worker {
    const { words, timing, probeName } = this;
    const data: WatchdogData = {
      words,
      beat: { ...beat },
      timing,
      originMs: ORIGIN_MS,
      probeName,
      loaderMaps: process.sourceMapsEnabled,
    };
    const worker = new Worker(watchdogSource(), {
      eval: true,
      name: 'nestjs-perf watchdog',
      workerData: data,
      // Nothing of the application's own preloads, loaders or environment: the thread needs none of it.
      env: {},
      execArgv: [],
      argv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    });
    worker.on('error', (error) => this.failed(error));
    worker.on('message', (told: Told) => {
      // By now what its looks have left here is gone: that runs before a listener does.
      if ('stopped' in told) worker.postMessage('end');
      else if ('reason' in told) this.notTraced(`the inspector does not answer (${told.reason.slice(0, 200)})`);
      else this.answer(told.id, told.locations);
    });
    // Last, since a listener of `message` holds the process again.
    worker.unref();
    return worker;
  }

  private notTraced(why: string): void {
    const cause = 'event-loop blocks are measured, but not traced to requests';
    this.report.report(cause, `${cause}: ${why}.`);
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
    const cause = `the event-loop watchdog ended: ${reasonOf(error)}`;
    this.report.report(cause, `${cause}. Blocks are still measured, but no longer traced to requests.`);
  }
}
