import type { PerfRecord } from './record.js';
import type { OncePerCause } from './reporter.js';
import type { PerfSink, PerfSinkHost } from './sink.js';
import { callAll } from './listeners.js';
import { PerfError } from './perf.error.js';
import { describeReason } from './reason.js';
import { inRootContext } from './root-context.js';
import { within } from './within.js';
import { settleAll } from './settle-all.js';

/** Bound of the records that wait for a batch, and of those that wait for one slow sink. */
const MAX_HELD = 10_000;
const BATCH = 500;
const FLUSH_EVERY_MS = 1_000;

/** Bounded buffer, batches, sinks, each with a lane of its own: one that throws or hangs costs the others nothing. */
export class Recorder {
  /** Lost because the buffer was full, before any sink saw them. */
  dropped = 0;
  /** False while sinks start: records wait for the last of them. */
  private started = false;
  private closed = false;
  private reportedDropped = 0;
  private lanes: readonly SinkLane[] = [];
  private readonly listeners: ((record: PerfRecord) => void)[] = [];
  private pending: PerfRecord[] = [];
  private closing: Promise<void> | null = null;
  private timer: NodeJS.Timeout | null = null;
  private immediate: NodeJS.Immediate | null = null;

  constructor(
    private readonly report: OncePerCause,
    /** False when nobody listens: then no record needs to be built. */
    readonly wanted: boolean,
  ) {}

  /** Once, before features are installed: a sink may be a provider, which there is only then. */
  use(sinks: readonly PerfSink[]): void {
    this.lanes = sinks.map((sink) => new SinkLane(sink, this.report));
  }

  get sinkNames(): string[] {
    return this.lanes.filter(({ isUsable }) => isUsable).map(({ sink }) => sink.name);
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
    this.started = true;
    this.deliver();
  }

  /** Calls `listener` with each record, within its push: it must be quick. */
  listen(listener: (record: PerfRecord) => void): void {
    this.listeners.push(listener);
  }

  /** Takes a record. Never throws, never waits. */
  push(record: PerfRecord): void {
    callAll(this.listeners, record, this.report, 'a listener to records');
    if (this.closed) return;
    if (this.pending.length >= MAX_HELD) {
      this.dropped += 1;
      return;
    }
    const length = this.pending.push(record);
    if (length === 1) this.timer ??= inRootContext(() => setTimeout(this.deliver, FLUSH_EVERY_MS).unref());
    else if (length === BATCH) this.immediate ??= inRootContext(() => setImmediate(this.deliver));
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
    this.cancelTimers();
    this.report.flush();
  }

  private async deliverAnd(then: (lane: SinkLane) => Promise<void>): Promise<void> {
    await inRootContext(() => {
      this.deliver();
      return Promise.all(this.lanes.map(then));
    });
  }

  private readonly deliver = (): void => {
    this.cancelTimers();
    this.reportDropped();
    if (this.pending.length === 0 || !this.started) return;
    const batch = this.pending;
    this.pending = [];
    for (const lane of this.lanes) lane.offer(batch);
  };

  private cancelTimers(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.immediate !== null) clearImmediate(this.immediate);
    this.timer = null;
    this.immediate = null;
  }

  private reportDropped(): void {
    const fresh = this.dropped - this.reportedDropped;
    if (fresh === 0) return;
    this.reportedDropped = this.dropped;
    this.report.report(
      'records dropped',
      `${fresh} records were dropped: more than ${MAX_HELD} came before the event loop turned once (${this.dropped} in all).`,
      fresh,
    );
  }
}

/** One sink with its own queue of batches: at most one `publish` is under way. */
class SinkLane {
  private readonly queue: (readonly PerfRecord[])[] = [];
  private held = 0;
  private lost = 0;
  private busy: Promise<void> | null = null;
  private host: PerfSinkHost | undefined;
  /** It has started and is not closed. */
  isUsable = false;

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
      if (error instanceof PerfError) throw error;
      this.fail('start', error, 'It is left out: it gets no records. ');
      return;
    }
    this.isUsable = true;
  }

  offer(batch: readonly PerfRecord[]): void {
    if (!this.isUsable) return;
    if (this.held + batch.length > MAX_HELD) {
      this.lose(batch.length);
      return;
    }
    this.queue.push(batch);
    this.held += batch.length;
    this.busy ??= this.drain();
  }

  async flush(deadlineMs: number): Promise<void> {
    if (!this.isUsable) return;
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
    if (!this.isUsable) return;
    const leftMs = countdown(deadlineMs);
    await this.flush(deadlineMs);
    this.isUsable = false;
    this.held = this.queue.length = 0;
    try {
      if (!(await within(leftMs(), async () => this.sink.close?.(this.host)))) {
        throw new Error(`close() did not settle in time`);
      }
    } catch (error) {
      this.fail('close', error);
    }
  }

  private async drain(): Promise<void> {
    // A sink may be synchronous; the first await keeps even its first batch out of the caller's turn.
    await Promise.resolve();
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
