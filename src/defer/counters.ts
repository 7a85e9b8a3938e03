import { describeReason } from '../core/reason.js';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../request/request-state.js';
import type { DeferStats } from '../core/snapshot.js';

/** The request that armed something. */
export type Origin = Pick<RequestState, 'id' | 'traceparent' | 'pattern'>;

export const nameOrigin = (origin: Origin | null) => ({
  requestId: origin?.id ?? null,
  route: origin?.pattern ?? null,
  traceparent: origin?.traceparent ?? null,
});

/** Names what ended, for a record. */
export type Ended = Omit<DeferredRecord, 'kind' | 'at' | 'outcome' | 'error'>;

export const unstarted = (
  name: string,
  { requestId, route }: Pick<Ended, 'requestId' | 'route'>,
  durable: boolean,
): Ended => ({ name, requestId, route, durable, waitMs: 0, runMs: 0, attempt: 1 });

/** States of an item: it waits and runs in this process, or is buffered on its way to a queue or store. The rest are ends. */
const NOWHERE = { waiting: 0, running: 0, buffered: 0, ran: 0, stored: 0, failed: 0, dropped: 0 };
export type ItemState = keyof typeof NOWHERE;

type Outcome = DeferredRecord['outcome'];
const COUNTED_AS = { completed: 'ran', failed: 'failed', timeout: 'failed', dropped: 'dropped' } as const;
const SAID_AS = { failed: 'failed', timeout: 'timed out', dropped: 'dropped' };

/** Counts every item from acceptance to its end: each is in one place, so the books always balance. */
export class Counters {
  private readonly items = { ...NOWHERE };
  /** How often items were tried, or sent, once more. */
  retried = 0;
  /** Jobs that their store runs here, and that are counted nowhere else before they end. */
  jobs = 0;
  private expected = 0;
  private waiters: (() => void)[] = [];
  private closed = false;

  constructor(
    private readonly publish: ((record: DeferredRecord) => void) | null,
    private readonly report: OncePerCause,
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

  /** Items that are not counted yet, but may be soon: more of them, or fewer. */
  expect(change: number): void {
    this.expected += change;
    this.announceIdle();
  }

  /** Counts, records and reports the end of an item. `from` null: it was not counted yet; it is now, so that nothing goes uncounted. */
  end(from: ItemState | null, item: Ended, outcome: Outcome, error: unknown = null): void {
    if (outcome === 'completed') this.record(item, outcome);
    else this.reportEnd(item, outcome, error);
    this.move(from, COUNTED_AS[outcome]);
  }

  /** An attempt of a worker. The job was counted where it was stored, in whichever process: here only a failure counts, as one item more. */
  ran(item: Ended, outcome: Exclude<Outcome, 'dropped'>, error: unknown, again: boolean): void {
    // It was put back when the application closed.
    if (this.closed) return;
    if (outcome === 'completed') this.record(item, outcome);
    else if (!again) this.end(null, item, outcome, error);
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
    this.report.report(cause, `${cause}${more}`);
  }

  private announceIdle(): void {
    if (this.waiters.length === 0 || !this.idle) return;
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}
