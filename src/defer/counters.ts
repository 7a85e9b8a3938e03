import { describeReason } from '../core/reason.js';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../request/request-state.js';
import type { DeferStats } from '../core/snapshot.js';

/** The request that armed something. */
export type Origin = Pick<RequestState, 'id' | 'traceparent' | 'pattern'>;

export const describeOrigin = (origin: Origin | null) => ({
  requestId: origin?.id ?? null,
  route: origin?.pattern ?? null,
  traceparent: origin?.traceparent ?? null,
});

/** The part of a record that does not depend on how the work ended. */
export type Ended = Omit<DeferredRecord, 'kind' | 'at' | 'outcome' | 'error'>;

export const describeUnstarted = (
  name: string,
  { requestId, route }: Pick<Ended, 'requestId' | 'route'>,
  durable: boolean,
): Ended => ({ name, requestId, route, durable, waitMs: 0, runMs: 0, attempt: 1 });

/** An item waits and runs in this process, or is buffered on its way to a queue or store. The other states are ends. */
const NO_ITEMS = { waiting: 0, running: 0, buffered: 0, ran: 0, stored: 0, failed: 0, dropped: 0 };
export type ItemState = keyof typeof NO_ITEMS;

type Outcome = DeferredRecord['outcome'];
const COUNTED_AS = { completed: 'ran', failed: 'failed', timeout: 'failed', dropped: 'dropped' } as const;
const SAID_AS = { failed: 'failed', timeout: 'timed out', dropped: 'dropped' };

/** Counts every item from its acceptance on, each in exactly one state: the sums of `stats()` always add up. */
export class Counters {
  private readonly items = { ...NO_ITEMS };
  retried = 0;
  /** Jobs that this process runs for the store: no state has them, because they counted where they were stored. */
  runningJobs = 0;
  private expected = 0;
  private waiters: (() => void)[] = [];
  private closed = false;

  constructor(
    private readonly publish: ((record: DeferredRecord) => void) | null,
    private readonly reporter: OncePerCause,
  ) {}

  stats(): DeferStats {
    const { waiting, running, buffered, ran, stored, failed, dropped } = this.items;
    const [pending, completed] = [waiting + buffered, ran + stored];
    const accepted = completed + failed + dropped + pending + running;
    return { pending, running, accepted, completed, failed, retried: this.retried, dropped, buffered, stored };
  }

  /** Nothing is pending, running or expected; or what is pending stays on disk, because the application has closed. */
  get idle(): boolean {
    const { waiting, running, buffered } = this.items;
    return this.closed || waiting + running + buffered + this.expected === 0;
  }

  whenIdle(): Promise<void> {
    if (this.idle) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  close(): void {
    this.closed = true;
    this.announceIdle();
  }

  /** `from` null: they are not counted yet. */
  move(from: ItemState | null, to: ItemState, items = 1): void {
    if (from !== null) this.items[from] -= items;
    this.items[to] += items;
    this.announceIdle();
  }

  /** Delays idleness for work that is still being prepared, and so in no state: +1 when that begins, -1 when it has ended. */
  expect(change: number): void {
    this.expected += change;
    this.announceIdle();
  }

  /** `from` null: it was not accepted yet, and counts as accepted and ended. */
  end(from: ItemState | null, item: Ended, outcome: Outcome, error: unknown = null): void {
    if (outcome === 'completed') this.record(item, outcome);
    else this.reportEnd(item, outcome, error);
    this.move(from, COUNTED_AS[outcome]);
  }

  /** Records an attempt of a worker. The job counted as completed where it was stored: only its final failure counts here, as one item more. */
  endAttempt(item: Ended, outcome: Exclude<Outcome, 'dropped'>, error: unknown, willRetry: boolean): void {
    // The store has put the job back: another process records it.
    if (this.closed) return;
    if (outcome === 'completed') this.record(item, outcome);
    else if (!willRetry) this.end(null, item, outcome, error);
    else {
      this.retried += 1;
      this.reportEnd(item, outcome, error);
    }
  }

  record(item: Ended, outcome: Outcome, error: string | null = null): void {
    this.publish?.({ kind: 'deferred', at: Date.now(), ...item, outcome, error });
  }

  private reportEnd(item: Ended, outcome: Exclude<Outcome, 'completed'>, error: unknown): void {
    const reason = describeReason(error);
    this.record(item, outcome, reason);
    const cause = `deferred work "${item.name}" ${SAID_AS[outcome]}: ${reason}`;
    const more = outcome === 'dropped' ? '.' : ` (attempt ${item.attempt}). The response was not affected.`;
    this.reporter.report(cause, `${cause}${more}`);
  }

  private announceIdle(): void {
    if (this.waiters.length === 0 || !this.idle) return;
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}
