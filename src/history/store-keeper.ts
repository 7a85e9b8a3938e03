import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { within } from '../core/within.js';
import type { TimeRange } from '../ports/history.js';
import type { Fleet, HistoryStore, HistoryStoreHost, OpenHistoryStore } from './history-store.js';
import type { HistoryRow } from './rows/row.js';
import type { Tier } from './rows/tiers.js';

/** Bytes of rows that wait for a store that fails: about a day of 50 routes. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** A reader is answered from memory when the store takes longer, milliseconds. */
const READ_DEADLINE_MS = 5_000;

/** Opens, reads and writes a store, one write at a time. Rows that it fails to take wait in bounded memory for the next minute. */
export class StoreKeeper {
  private opening: Promise<OpenHistoryStore> | null = null;
  private waiting: HistoryRow[] = [];
  /** Rows of buckets that have not ended: each write replaces them. */
  private running: readonly HistoryRow[] = [];
  private busy: Promise<void> | null = null;
  private closed = false;
  /** The last write has failed: rows wait. */
  isFailing = false;

  constructor(
    private readonly store: HistoryStore,
    private readonly host: HistoryStoreHost,
    private readonly report: OncePerCause,
  ) {}

  /** Resolves with true when the store has these rows and all that waited. */
  async write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<boolean> {
    this.enqueue(finished);
    this.running = running;
    const last = this.waiting.at(-1);
    // The write under way does not include these rows.
    await this.busy;
    await (this.busy ??= this.writeNow().finally(() => (this.busy = null)));
    return last === undefined || !this.waiting.includes(last);
  }

  /** Resolves with null when the store has no fleet, or is away, which is reported. */
  async fleet<T>(work: (fleet: Fleet) => Promise<T>): Promise<T | null> {
    return this.inTime('it', async () => {
      const { fleet } = await this.opened();
      return fleet === undefined ? null : work(fleet);
    });
  }

  /**
   * Passes the rows of the range to `take`, one by one. False when `write` resolves with false, or when the store does not return all
   * within its deadline; the time of `take` does not count.
   */
  async read(
    tier: Tier,
    range: TimeRange,
    take: (row: HistoryRow) => Promise<void>,
    write = (): Promise<boolean> => Promise.resolve(true),
  ): Promise<boolean> {
    let leftMs = READ_DEADLINE_MS;
    const wait = async <T>(work: () => Promise<T>): Promise<T | null> => {
      const startedMs = performance.now();
      const found = await this.inTime('a read', work, leftMs);
      leftMs -= performance.now() - startedMs;
      return found;
    };
    const rows = await wait(async () =>
      (await write()) ? (await this.opened()).read(tier, range)[Symbol.asyncIterator]() : null,
    );
    while (rows !== null) {
      const next = await wait(() => rows.next());
      if (next === null || next.done === true) return next !== null;
      await take(next.value);
    }
    return false;
  }

  /** Writes the last rows, of buckets cut short by the shutdown, and closes the store. */
  async close(last: readonly HistoryRow[], deadlineMs: number): Promise<void> {
    const settled = await within(deadlineMs, () => this.write(last, []));
    this.closed = true;
    if (!settled) this.reportFailure(new Error(`it did not settle within ${deadlineMs} ms`));
    // A store that is still opening is closed once it is open.
    const closing = this.opening?.then((store) => store.close()).catch(() => {});
    if (settled) await closing;
  }

  /** Resolves with null when `work` fails or is late, which is reported. */
  private async inTime<T>(what: string, work: () => Promise<T>, leftMs = READ_DEADLINE_MS): Promise<T | null> {
    let found: T | null = null;
    try {
      if (await within(leftMs, async () => void (found = await work()))) return found;
      throw new Error(`${what} did not settle within ${READ_DEADLINE_MS} ms`);
    } catch (error) {
      if (!this.closed) this.reportFailure(error);
      return null;
    }
  }

  private async writeNow(): Promise<void> {
    const rows = this.waiting;
    try {
      const store = await this.opened();
      await store.write(rows, this.running);
      this.isFailing = false;
      const written = new Set(rows);
      this.waiting = this.waiting.filter((row) => !written.has(row));
    } catch (error) {
      this.isFailing = true;
      if (!this.closed) this.reportFailure(error);
    }
  }

  private opened(): Promise<OpenHistoryStore> {
    if (this.closed) return Promise.reject(new Error('the application has closed'));
    this.opening ??= this.store.open(this.host).catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return this.opening;
  }

  private enqueue(rows: readonly HistoryRow[]): void {
    this.waiting = [...this.waiting, ...rows];
    let bytes = 0;
    // Keeps the newest rows that fit.
    const lost = this.waiting.findLastIndex(({ data }) => (bytes += data.length) > MAX_WAITING_BYTES) + 1;
    if (lost === 0) return;
    this.waiting = this.waiting.slice(lost);
    const cause = `history store "${this.store.name}" lost rows`;
    this.report.report(cause, `${cause}: ${lost}, because it has failed for too long.`, lost);
  }

  private reportFailure(error: unknown): void {
    const reason = describeReason(error);
    const cause = `history store "${this.store.name}" failed: ${reason}`;
    const advice = 'What this process has seen is in memory; the store is tried again every minute.';
    this.report.report(cause, `${cause}${/[.!?]$/.test(reason) ? '' : '.'} ${advice}`);
  }
}
