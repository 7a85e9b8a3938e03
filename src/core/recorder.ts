import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PerfRecord } from './record.js';
import type { OncePerCause } from './reporter.js';
import type { PerfSink, PerfSinkHost } from './sink.js';
import { PerfError } from './perf.error.js';
import { describeReason } from './reason.js';
import { inRootContext } from './root-context.js';
import { within } from './within.js';
import { settleAll } from './settle-all.js';

/** Bound of the records that wait for one slow sink. */
const MAX_HELD = 10_000;
const BATCH = 500;
const FLUSH_EVERY_MS = 1_000;

/** Batches, and sinks with a bounded lane each: one that throws or hangs costs the others nothing. */
export class Recorder {
  private closed = false;
  private lanes: readonly SinkLane[] = [];
  private given: readonly PerfSink[] = [];
  private pending: PerfRecord[] = [];
  private closing: Promise<void> | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly report: OncePerCause,
    /** False without a sink: then no record needs to be built. */
    readonly wanted: boolean,
  ) {}

  /** Once, before features are installed: a sink may be a provider, which there is only then. */
  use(sinks: readonly PerfSink[], ofFeatures: readonly PerfSink[] = []): void {
    this.given = sinks;
    this.lanes = [...sinks, ...ofFeatures].map((sink) => new SinkLane(sink, this.report));
  }

  /** The names of the application's sinks that work. */
  get sinkNames(): string[] {
    const usable = this.lanes.filter(({ isUsable, sink }) => isUsable === true && this.given.includes(sink));
    return usable.map(({ sink }) => sink.name);
  }

  /** Selects the requests whose records some sink wants. */
  get requestsWanted(): 'all' | 'slow' | 'none' {
    const wanted = new Set(this.lanes.map(({ sink }) => sink.requests ?? 'all'));
    return wanted.has('all') ? 'all' : wanted.has('slow') ? 'slow' : 'none';
  }

  /** Starts all sinks at once. A wrong option of one stops the boot; a sink that fails otherwise, or is late, is reported and left out. */
  async start(createHost: () => PerfSinkHost, deadlineMs: number): Promise<void> {
    const [refusal] = await settleAll(this.lanes.map((lane) => lane.start(createHost(), deadlineMs)));
    if (refusal !== undefined) throw refusal;
  }

  /** Takes a record. Never throws, never waits. */
  push(record: PerfRecord): void {
    if (this.closed) return;
    const length = this.pending.push(record);
    if (length === 1) this.timer ??= inRootContext(() => setTimeout(this.deliver, FLUSH_EVERY_MS).unref());
    else if (length === BATCH) inRootContext(this.deliver);
  }

  /** Publishes and flushes to every sink; resolves within the deadline, and reports each sink that did not. */
  flush(deadlineMs: number): Promise<void> {
    return this.deliverAnd((lane) => lane.flush(deadlineMs));
  }

  /** Flushes and closes every sink within one deadline, once. Later records are dropped. */
  close(deadlineMs: number): Promise<void> {
    return (this.closing ??= this.flushAndClose(deadlineMs));
  }

  private async flushAndClose(deadlineMs: number): Promise<void> {
    await this.deliverAnd((lane) => lane.flushAndClose(deadlineMs));
    this.closed = true;
    this.cancelTimer();
    this.report.flush();
  }

  private async deliverAnd(then: (lane: SinkLane) => Promise<void>): Promise<void> {
    await inRootContext(() => {
      this.deliver();
      return Promise.all(this.lanes.map(then));
    });
  }

  private readonly deliver = (): void => {
    this.cancelTimer();
    if (this.pending.length === 0) return;
    const batch = this.pending;
    this.pending = [];
    for (const lane of this.lanes) lane.offer(batch);
  };

  private cancelTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

/** One sink with its own queue of batches: at most one `publish` is under way. */
class SinkLane {
  private readonly queue: (readonly PerfRecord[])[] = [];
  private held = 0;
  private lost = 0;
  private busy: Promise<void> | null = null;
  private host: PerfSinkHost | undefined;
  /** Null until it has started: records wait. False: its start has failed, or it is closed. */
  isUsable: boolean | null = null;

  constructor(
    readonly sink: PerfSink,
    private readonly report: OncePerCause,
  ) {}

  async start(host: PerfSinkHost, deadlineMs: number): Promise<void> {
    this.host = host;
    try {
      const started = await within(deadlineMs, async () => this.sink.start?.(host));
      if (!started) throw new Error(`start() did not settle within ${deadlineMs} ms`);
    } catch (error) {
      this.leave();
      if (error instanceof PerfError) throw error;
      this.fail('start', error, 'It is left out: it gets no records. ');
      return;
    }
    this.isUsable = true;
    if (this.queue.length > 0) this.busy ??= this.drain();
  }

  offer(batch: readonly PerfRecord[]): void {
    if (this.isUsable === false) return;
    if (this.held + batch.length > MAX_HELD) {
      this.lose(batch.length);
      return;
    }
    this.queue.push(batch);
    this.held += batch.length;
    if (this.isUsable === true) this.busy ??= this.drain();
  }

  async flush(deadlineMs: number): Promise<void> {
    if (this.isUsable !== true) return;
    const leftMs = countdown(deadlineMs);
    try {
      const drained = await within(deadlineMs, async () => {
        while (this.busy !== null) await this.busy;
      });
      if (!drained) {
        this.lose(this.held);
        this.held = this.queue.length = 0;
        throw new Error(`publish() did not settle within ${deadlineMs} ms`);
      }
      if (!(await within(leftMs(), async () => this.sink.flush?.(leftMs())))) {
        throw new Error(`flush() did not settle within ${deadlineMs} ms`);
      }
    } catch (error) {
      this.fail('flush', error);
    }
  }

  /** Sinks close one by one: one that hangs must not take another's time. */
  async flushAndClose(deadlineMs: number): Promise<void> {
    // Its `start()` did not run, or failed: there is nothing to close.
    if (this.isUsable !== true) return;
    const leftMs = countdown(deadlineMs);
    await this.flush(deadlineMs);
    this.leave();
    try {
      if (!(await within(leftMs(), async () => this.sink.close?.(this.host)))) {
        throw new Error(`close() did not settle in time`);
      }
    } catch (error) {
      this.fail('close', error);
    }
  }

  private leave(): void {
    this.isUsable = false;
    this.held = this.queue.length = 0;
  }

  private async drain(): Promise<void> {
    // A sink may be synchronous: even its first batch comes in a turn of its own.
    await nextTurn();
    for (let batch = this.queue.shift(); batch !== undefined; batch = this.queue.shift()) {
      try {
        // A copy: a sink may do with it what it likes.
        await this.sink.publish(batch.slice());
      } catch (error) {
        this.lose(batch.length);
        this.fail('publish', error);
      }
      this.held = Math.max(0, this.held - batch.length);
    }
    this.busy = null;
  }

  private lose(records: number): void {
    this.lost += records;
    if (records > 0) {
      const cause = `sink "${this.sink.name}" lost records`;
      const message = `${cause}: ${records} now, ${this.lost} in all, because it was slow, hung or failed.`;
      this.report.report(cause, message, records);
    }
  }

  private fail(step: string, error: unknown, consequence = ''): void {
    const cause = `sink "${this.sink.name}" failed in ${step}(): ${describeReason(error)}`;
    this.report.report(cause, `${cause}. ${consequence}Requests and other sinks are not affected.`);
  }
}

/** Returns the milliseconds left of a deadline that begins now. */
function countdown(ms: number): () => number {
  const endMs = performance.now() + ms;
  return () => Math.max(0, endMs - performance.now());
}
