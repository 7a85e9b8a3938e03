import { within } from '../../core/within.js';
import type { StatsigAdapter } from './adapter.js';
import { reasonWithoutKey, type StatsigEvent } from './client.js';

/** Events handed over at a time: half of the size at which the SDK posts by itself. */
const BATCH = 500;
const MAX_WAITING = 10_000;
/** How long the SDK may take for a batch. Its timer keeps the process alive as long. */
const POST_TIMEOUT_MS = 5_000;

/** Events wait here and not in the SDK, which has no bound of its own. One batch is with the SDK at a time. */
export class EventQueue {
  private waiting: StatsigEvent[] = [];
  private sending: Promise<void> | null = null;
  /** Events that the SDK has and is posting. */
  private posting = 0;

  constructor(
    private readonly adapter: StatsigAdapter,
    /** Gets the number of lost events. The SDK does not report events that it loses itself. */
    private readonly lost: (events: number, reason: string) => void,
  ) {}

  /** Takes as many of them as there is room for, and sends when a batch is full. Never waits. */
  add(events: readonly StatsigEvent[]): void {
    const room = MAX_WAITING - this.waiting.length;
    for (const event of events.slice(0, room)) this.waiting.push(event);
    this.reportLost(events.length - room, `more than ${MAX_WAITING} were waiting`);
    if (this.waiting.length >= BATCH) void this.send();
  }

  /** Hands over all that waits, one batch after the other. Never rejects. */
  async send(): Promise<void> {
    if (this.waiting.length > 0) this.sending ??= this.sendAll();
    await this.sending;
  }

  /** The end: events without an answer are lost. */
  drop(): void {
    const events = this.waiting.length + this.posting;
    this.waiting = [];
    this.posting = 0;
    this.reportLost(events, 'no answer before the application closed');
  }

  private async sendAll(): Promise<void> {
    try {
      await this.adapter.ready();
      while (this.waiting.length > 0) await this.handOver(this.waiting.splice(0, BATCH));
    } catch (error) {
      this.reportLost(this.waiting.length, `the client could not be initialised: ${reasonWithoutKey(error)}`);
      this.waiting = [];
    } finally {
      this.sending = null;
    }
  }

  /** Never rejects. */
  private async handOver(batch: readonly StatsigEvent[]): Promise<void> {
    let logged = 0;
    try {
      for (; logged < batch.length; logged += 1) this.adapter.log(batch[logged]!);
    } catch (error) {
      // Before its initialisation and after its shutdown.
      this.reportLost(batch.length - logged, reasonWithoutKey(error));
    }
    if (logged === 0) return;
    this.posting = logged;
    try {
      // A little longer for the SDK, so that it is surely we who see that it was late.
      const inTime = await within(POST_TIMEOUT_MS, () => this.adapter.flush(POST_TIMEOUT_MS + 100));
      if (!inTime) throw new Error(`no answer within ${POST_TIMEOUT_MS} ms`);
    } catch (error) {
      this.reportLost(this.posting, reasonWithoutKey(error));
    } finally {
      this.posting = 0;
    }
  }

  private reportLost(events: number, reason: string): void {
    if (events > 0) this.lost(events, reason);
  }
}
