import { isMainThread, Worker } from 'node:worker_threads';
import { monotonicMs } from '../core/clock.js';
import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import { listenShared } from '../core/shared-listener.js';
import { workingDirectory } from '../core/working-directory.js';
import type { KernelFiles, KernelTexts } from '../ports/kernel-files.js';
import { MODE, UNITS_PER_MS, WORD } from './beat.js';
import type { Timing } from './event-loop.options.js';
import type {
  SamplerThreadData,
  ThreadAnswer,
  ThreadMessage,
  ThreadQuestion,
  ThreadRequest,
} from './sampler-messages.js';
import { samplerSource } from './sampler-source.js';
import type { Position } from './source-lines.js';
import type { Liveness } from './liveness.js';

/** Time for an answer of the thread: the first location in a bundle makes it read the bundle's source map. */
const ANSWER_MS = 2_000;
const STOP_DEADLINE_MS = 1_000;
/** A process that ends waits so long for the sample under way, then for the disconnect of its inspector session. */
const EXIT_DEADLINE_MS = 50;
const DISCONNECT_MS = 2;
/** A thread that an error has ended (out of memory) starts again after this. */
const RESTART_MS = 5_000;
/** Room for the largest source map that is read. */
const HEAP_MB = 192;

/** Why no sampler can run here; null when one can. Under Node's permission model `connectToMainThread()` would abort the process (inspector_agent.cc). */
export function samplerObstacle(): string | null {
  if (!isMainThread) return 'the application runs in a worker thread';
  if (!process.features.inspector) return 'this Node was built without the inspector';
  const permission = (process as { permission?: { has(scope: string): boolean } }).permission;
  const missing = ['inspector', 'worker'].filter((scope) => permission?.has(scope) === false);
  if (missing.length === 0) return null;
  if (!process.allowedNodeEnvironmentFlags.has('--allow-inspector'))
    return 'the permission model is on, and this version of Node has no `--allow-inspector`';
  return `the permission model is on without ${missing.map((scope) => `\`--allow-${scope}\``).join(' and ')}`;
}

/** Origin of the main thread's clock on the kernel's, milliseconds. Read before a test fakes the clock. */
const ORIGIN_MS = Number(process.hrtime.bigint()) / 1e6 - monotonicMs();

/** The main thread's side of the sampler's thread. */
export class SamplerWorker implements KernelFiles {
  private worker: Worker | null = null;
  private takesSamples = false;
  private readonly waiting = new Map<number, (answer: ThreadAnswer | null) => void>();
  private questions = 0;
  private ignoreExit = (): void => {};
  private restart: NodeJS.Timeout | undefined;

  constructor(
    private readonly words: Int32Array,
    private readonly timing: Timing,
    private readonly probeName: string,
    private readonly reportsHangs: boolean,
    private readonly report: OncePerCause,
    private readonly liveness: Liveness | null = null,
  ) {}

  get running(): boolean {
    return this.worker !== null && this.takesSamples;
  }

  /** Starts the thread, where one can run; it boots while the main thread goes on (or is blocked already). Never throws. */
  start(): void {
    const obstacle = samplerObstacle();
    this.takesSamples = obstacle === null;
    if (obstacle !== null) this.reportUntraced(obstacle);
    if (obstacle !== null && this.liveness === null) return;
    try {
      this.worker = inRootContext(() => this.startThread());
      this.ignoreExit = listenShared(process, 'exit', this.stopBeforeExit);
    } catch (error) {
      this.loseThread(null, error);
    }
  }

  /** The main thread beats fast from now on. */
  wake(): void {
    if (this.worker !== null) send(this.worker, 'wake');
  }

  /**
   * Asks the thread to end by itself, in a later turn: `terminate()` in the middle of a sample has aborted processes. Resolves when
   * `eventLoop.port` is free; without one, at once.
   */
  stop(): Promise<void> {
    this.stopBeforeExit();
    this.ignoreExit();
    clearTimeout(this.restart);
    const { worker } = this;
    this.worker = null;
    this.answerAll();
    if (worker === null) return Promise.resolve();
    send(worker, 'stop');
    const timer = inRootContext(() => setTimeout(() => void worker.terminate(), STOP_DEADLINE_MS).unref());
    const ended = new Promise<void>((resolve) => {
      worker.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    if (this.liveness === null) return Promise.resolve();
    worker.ref();
    return ended;
  }

  /** Source positions; null when the thread does not answer in time. Never rejects. */
  async locate(positions: readonly Position[], deadlineMs = ANSWER_MS): Promise<readonly (string | null)[] | null> {
    if (positions.length === 0) return null;
    const answer = await this.request((id) => ({ id, positions }), deadlineMs);
    return answer !== null && 'locations' in answer ? answer.locations : null;
  }

  /** Texts of small files; null when the thread does not answer in time. Never rejects. */
  async readFiles(paths: Iterable<string>): Promise<KernelTexts | null> {
    const answer = await this.request((id) => ({ id, paths: [...paths] }), ANSWER_MS);
    return answer !== null && 'files' in answer ? answer.files : null;
  }

  private request(make: (id: number) => ThreadQuestion, deadlineMs: number): Promise<ThreadAnswer | null> {
    const { worker } = this;
    if (worker === null || deadlineMs <= 0) return Promise.resolve(null);
    this.questions += 1;
    const question = make(this.questions);
    return new Promise((resolve) => {
      const timer = inRootContext(() => setTimeout(() => this.answer(question.id, null), deadlineMs).unref());
      this.waiting.set(question.id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      send(worker, question);
    });
  }

  private startThread(): Worker {
    const { words, timing, probeName, takesSamples, reportsHangs, liveness } = this;
    const data: SamplerThreadData = {
      words,
      beat: { WORD, MODE, UNITS_PER_MS },
      timing,
      originMs: ORIGIN_MS,
      probeName,
      takesSamples,
      workingDirectory: workingDirectory(),
      reportsHangs,
      loaderMaps: process.sourceMapsEnabled,
      liveness: liveness === null ? null : { ...liveness.options, methods: liveness.methods() },
    };
    Atomics.store(words, WORD.connected, 0);
    const worker = new Worker(samplerSource(), {
      eval: true,
      name: 'nestjs-perf sampler',
      workerData: data,
      env: {},
      execArgv: [],
      argv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    });
    worker.on('error', (error) => this.loseThread(worker, error));
    worker.on('exit', (code) => this.loseThread(worker, new Error(`it exited with code ${code}`)));
    worker.on('message', (message: ThreadMessage) => {
      // Node cleans up after samples before it calls a listener: now the thread may end.
      if ('stopped' in message) send(worker, 'end');
      else if ('reason' in message)
        this.reportUntraced(`the inspector does not answer (${message.reason.slice(0, 200)})`);
      else if ('id' in message) this.answer(message.id, message);
      else void liveness?.receive(message, (metrics) => send(worker, { metrics }));
    });
    // Last: a listener of `message` refs the worker again.
    worker.unref();
    return worker;
  }

  private reportUntraced(why: string): void {
    const cause = 'event-loop blocks are measured, but not traced to requests';
    this.report.report(cause, `${cause}: ${why}.`);
  }

  private answer(id: number, answer: ThreadAnswer | null): void {
    this.waiting.get(id)?.(answer);
    this.waiting.delete(id);
  }

  private answerAll(): void {
    for (const id of this.waiting.keys()) this.answer(id, null);
  }

  /**
   * Ends the sample under way: a process that ends with one prints "Waiting for the debugger to disconnect...". It spins, since the
   * answer and the disconnect are interrupts, which `Atomics.wait()` would not let in.
   */
  private readonly stopBeforeExit = (): void => {
    Atomics.store(this.words, WORD.mode, MODE.stopped);
    const isConnected = (): boolean => Atomics.load(this.words, WORD.connected) === 1;
    if (!isConnected()) return;
    turnWhile(isConnected, EXIT_DEADLINE_MS);
    turnWhile(() => true, DISCONNECT_MS);
  };

  /** Reports the end of the thread, and starts it again later. `worker` null: it could not be made. */
  private loseThread(worker: Worker | null, error: unknown): void {
    if (this.worker !== worker) return;
    this.worker = null;
    this.answerAll();
    const reason = describeReason(error);
    const cause = `the event-loop sampler ended: ${reason}`;
    const meanwhile = 'Blocks are still measured, but not traced to requests';
    this.report.report(cause, `${cause}. ${meanwhile} until it starts again in ${RESTART_MS / 1_000} s.`);
    this.liveness?.failed(reason);
    this.restart = inRootContext(() => setTimeout(() => this.start(), RESTART_MS).unref());
  }
}

const send = (worker: Worker, request: ThreadRequest): void => worker.postMessage(request);

function turnWhile(condition: () => boolean, deadlineMs: number): void {
  for (const untilMs = monotonicMs() + deadlineMs; condition() && monotonicMs() < untilMs;);
}
