import { setTimeout as delay } from 'node:timers/promises';
import { within } from '../../core/within.js';
import type { StatsigAdapter } from './adapter.js';
import type { StatsigEvent } from './client.js';
import { lost, reasonOf, type Undelivered } from './undelivered.js';

/**
 * Events a post holds, at the most. Half of what the SDK's own queue holds before it posts by itself, in its own way. It
 * also keeps the SDK's JSON.stringify of a batch near a millisecond.
 */
const BATCH = 500;
/** Events held in all: waiting, on their way, and in posts that failed. */
const MAX_HELD = 10_000;
/** Long, because a post that is cut off may have arrived: it is not sent again, so its events may be lost. */
const POST_TIMEOUT_MS = 30_000;
/** A post that Statsig refuses again and again must not hold up all others for ever. */
const GIVE_UP_AFTER_MS = 600_000;
/** Pause after the first failure of a flush; doubled after each further one. Without a flush, posts are tried when the clock says. */
const FIRST_PAUSE_MS = 250;

/** Told what has become of events. */
export interface QueueReports {
  /** They did not arrive, or nobody knows whether they did. */
  lost(events: number, reason: string): void;
  /** They will be posted again. */
  kept(events: number, reason: string): void;
}

interface FailedPost {
  post: Undelivered;
  firstFailedMs: number;
}

/**
 * Events wait here, not in the SDK, which would lose those of a failing post without a word. One post is under way at a
 * time. One that fails, and surely did not arrive, is kept and posted again before all others; what is lost is counted.
 */
export class EventQueue {
  private waiting: StatsigEvent[] = [];
  private failed: FailedPost[] = [];
  private underWay = 0;
  /** Why the last post failed; null when it did not. */
  private failing: string | null = null;
  private sending: Promise<void> | null = null;
  private ready: Promise<void> | null = null;
  private abort: AbortController | null = null;

  constructor(
    private readonly adapter: StatsigAdapter,
    private readonly reports: QueueReports,
  ) {}

  /** Events that are neither delivered nor lost. */
  get held(): number {
    return this.failed.reduce((sum, { post }) => sum + post.events, this.waiting.length + this.underWay);
  }

  /** Takes as many of them as there is room for, and posts when a batch is full. Never waits. */
  add(events: readonly StatsigEvent[]): void {
    const room = Math.max(0, MAX_HELD - this.held);
    for (const event of room < events.length ? events.slice(0, room) : events) this.waiting.push(event);
    const refused = events.length - room;
    if (refused > 0) this.reports.lost(refused, `more than ${MAX_HELD} were waiting`);
    if (this.waiting.length >= BATCH && this.failing === null) void this.send();
  }

  /** Posts all that waits, one post after the other, until one fails. Never rejects. */
  send(): Promise<void> {
    return (this.sending ??= this.sendAll());
  }

  /** Like {@link send}, but tries a failing post again while there is time. What is left stays. */
  async sendWithin(deadlineMs: number): Promise<void> {
    // Over a little before the deadline, so that whoever set it does not count this as late.
    const endMs = performance.now() + deadlineMs * 0.9;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      const inTime = await within(endMs - performance.now(), () => this.send());
      if (!inTime || this.held === 0 || endMs - performance.now() <= pauseMs) return;
      await delay(pauseMs);
    }
  }

  /** The end: what is still here is lost. */
  drop(): void {
    const { held } = this;
    this.waiting = [];
    this.failed = [];
    this.underWay = 0;
    const reason = `not delivered before the application closed${this.failing === null ? '' : `; ${this.failing}`}`;
    this.failing = null;
    this.abort?.abort(new Error(reason));
    this.abort = null;
    if (held > 0) this.reports.lost(held, reason);
  }

  private async sendAll(): Promise<void> {
    try {
      this.ready ??= this.adapter.ready();
      await this.ready;
      do await this.postNext();
      while (this.failing === null && this.held > 0);
    } catch (error) {
      this.ready = null;
      const { length } = this.waiting;
      this.waiting = [];
      if (length > 0) this.reports.lost(length, `the client could not be initialised: ${reasonOf(error)}`);
    } finally {
      this.sending = null;
    }
  }

  private async postNext(): Promise<void> {
    const retried = this.failed.shift();
    const batch = retried === undefined ? this.waiting.splice(0, BATCH) : [];
    this.underWay = retried?.post.events ?? batch.length;
    if (this.underWay === 0) return;
    const abort = (this.abort = new AbortController());
    const late = new Error(`no answer within ${POST_TIMEOUT_MS} ms`);
    const timer = setTimeout(() => abort.abort(late), POST_TIMEOUT_MS).unref();
    const undelivered = await this.post(retried, batch, abort.signal);
    clearTimeout(timer);
    // Dropped meanwhile, and counted then.
    if (this.abort !== abort) return;
    this.abort = null;
    this.underWay = 0;
    this.failing = undelivered[0]?.reason ?? null;
    for (const post of undelivered) this.keepOrLose(post, retried?.firstFailedMs ?? performance.now());
  }

  private async post(
    retried: FailedPost | undefined,
    batch: readonly StatsigEvent[],
    signal: AbortSignal,
  ): Promise<readonly Undelivered[]> {
    try {
      if (retried === undefined) return await this.adapter.post(batch, signal);
      const still = await retried.post.again!(signal);
      return still === null ? [] : [still];
    } catch (error) {
      return [lost(retried?.post.events ?? batch.length, error)];
    }
  }

  private keepOrLose(post: Undelivered, firstFailedMs: number): void {
    if (post.again !== null && performance.now() - firstFailedMs < GIVE_UP_AFTER_MS) {
      this.failed.push({ post, firstFailedMs });
      this.reports.kept(post.events, post.reason);
    } else this.reports.lost(post.events, post.reason);
  }
}
