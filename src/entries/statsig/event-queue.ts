import { within } from '../../core/within.js';
import type { StatsigAdapter } from './adapter.js';
import type { StatsigEvent } from './client.js';

/**
 * Events a post holds, at the most. Half of what the SDK's own queue holds before it posts by itself, in its own way:
 * see {@link EventQueue}. It also keeps the SDK's JSON.stringify of a batch near a millisecond.
 */
const BATCH = 500;
const POST_TIMEOUT_MS = 5_000;

/** Told how many events were not delivered and why. */
export type UndeliveredReport = (events: number, reason: string) => void;

/**
 * Events wait here, not in the SDK: they are handed over and posted in the same turn of the event loop, so the SDK's own
 * timer never finds them and never retries them without end. One post is under way at a time; whoever adds faster than
 * posts succeed has to wait in {@link room}.
 */
export class EventQueue {
  private events: StatsigEvent[] = [];
  private sending: Promise<void> | null = null;
  private ready: Promise<void> | null = null;

  constructor(
    private readonly adapter: StatsigAdapter,
    private readonly undelivered: UndeliveredReport,
  ) {}

  add(event: StatsigEvent): void {
    this.events.push(event);
  }

  /** Resolves when there is room for another batch of records; posts if a post is due. */
  async room(): Promise<void> {
    if (this.events.length >= BATCH) await this.send();
  }

  /** Posts everything that waits now. Never rejects: what fails is reported. */
  async send(timeoutMs = POST_TIMEOUT_MS): Promise<void> {
    while (this.sending !== null) await this.sending;
    if (this.events.length === 0) return;
    this.sending = this.sendAll(timeoutMs);
    await this.sending;
  }

  /** Like {@link send}, but over when the deadline is: what is still here then is dropped, and reported. */
  async sendWithin(deadlineMs: number): Promise<void> {
    // A post gives up a little before the deadline, so that it can still say so.
    const timeoutMs = Math.min(deadlineMs * 0.9, POST_TIMEOUT_MS);
    if (await within(deadlineMs, () => this.send(timeoutMs))) return;
    const { length } = this.events;
    this.events = [];
    if (length > 0) this.undelivered(length, `not sent within ${Math.round(deadlineMs)} ms`);
  }

  private async sendAll(timeoutMs: number): Promise<void> {
    try {
      this.ready ??= this.adapter.ready();
      await this.ready;
      while (this.events.length > 0) await this.post(this.events.splice(0, BATCH), timeoutMs);
    } catch (error) {
      this.ready = null;
      this.undelivered(this.events.length, `the client could not be initialised: ${reasonOf(error)}`);
      this.events = [];
    } finally {
      this.sending = null;
    }
  }

  /** No `await` between the first `log()` and `flush()`: see the class. */
  private async post(batch: readonly StatsigEvent[], timeoutMs: number): Promise<void> {
    let logged = 0;
    try {
      for (const event of batch) {
        this.adapter.log(event);
        logged += 1;
      }
    } catch (error) {
      this.undelivered(batch.length - logged, reasonOf(error));
    }
    if (logged === 0) return;
    try {
      await this.adapter.flush(timeoutMs);
    } catch (error) {
      this.undelivered(logged, reasonOf(error));
    }
  }
}

/** The SDK puts the secret key into the URL of its specs, and URLs into its messages. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(/secret-[\w-]+/g, 'secret-…').slice(0, 200);
}
