import { entryOf } from '../../core/entry-of.js';
import type { TimeRange } from '../../ports/history.js';
import { Histogram } from '../../core/histogram.js';
import type { Collected } from '../collector.js';
import type { Steps } from '../../core/turns.js';
import { EncodedWindow, encodeWindow } from './window-codec.js';
import { startBucket, MINUTE_MS, TIERS, type Tier, type TierRule } from './tiers.js';
import { SiteWindow, type RouteWindow } from './window.js';

/** A quantile of a minute's durations: what lies above it counts as it in `typicalMs`. */
const CAP = 0.98;
/** Corrections of the clock up to this size happen every day: they are waited out. */
const WAITED_MS = 2 * MINUTE_MS;

/** A bucket that is over, encoded, or one that runs. */
export interface Bucket {
  readonly tier: Tier;
  readonly at: number;
  readonly data: Uint8Array;
}

/** The buckets of one tier, by their beginning. */
interface TierBuckets extends TierRule {
  readonly finished: Map<number, Uint8Array>;
  readonly running: Map<number, SiteWindow>;
}

/** One that has ended goes on where the clock was set back into it: its row replaces the first. */
function runningAt({ finished, running }: TierBuckets, at: number): SiteWindow {
  return entryOf(running, at, () => {
    const data = finished.get(at);
    finished.delete(at);
    return data === undefined ? new SiteWindow() : new EncodedWindow(data).decoded();
  });
}

/** This process's buckets in the three tiers, bounded in time and bytes. Methods in steps must run one after the other. */
export class MemoryTiers {
  private readonly tiers = new Map<Tier, TierBuckets>(
    TIERS.map((rule) => [rule.tier, { ...rule, finished: new Map(), running: new Map() }]),
  );
  /** By minute, what {@link takeFresh} has not taken yet; null where nobody takes it. */
  private readonly fresh: Map<number, SiteWindow> | null;
  /** No bucket before it is opened again, whatever time the clock has. */
  private finishedUntil = 0;

  constructor(
    private readonly maxBytes: number,
    keepsFresh = false,
  ) {
    this.fresh = keepsFresh ? new Map() : null;
  }

  /** Adds what was counted at about `atMs`. */
  *add(atMs: number, { process, routes }: Collected): Steps<void> {
    // A clock that was set back a little is waited for: a read meanwhile of what was until now does not see what is added.
    if (this.finishedUntil - atMs > WAITED_MS) this.finishedUntil = 0;
    const at = Math.max(atMs, this.finishedUntil);
    const [minute, ...others] = [...this.tiers.values()].map((tier) => runningAt(tier, startBucket(at, tier.stepMs)));
    if (this.fresh !== null) others.push(entryOf(this.fresh, startBucket(at, MINUTE_MS), () => new SiteWindow()));
    for (const window of [minute!, ...others]) window.process.add(process);
    for (const [name, route] of routes) {
      const known = minute!.routes.get(name);
      this.cap(known, route);
      for (const window of others) window.routeOf(name).merge(route);
      if (known === undefined) minute!.routes.set(name, route);
      else known.merge(route);
      yield;
    }
  }

  /** Counts since the last call, by minute. */
  *takeFresh(): Steps<Bucket[]> {
    const fresh = [...(this.fresh ?? [])];
    this.fresh?.clear();
    const taken: Bucket[] = [];
    for (const [at, window] of fresh) taken.push({ tier: '1m', at, data: yield* encodeWindow(window) });
    return taken;
  }

  /** Ends the buckets that are over at `nowMs`, and returns them. */
  *finish(nowMs: number): Steps<Bucket[]> {
    const ended: Bucket[] = [];
    for (const [tier, buckets] of this.tiers) {
      for (const [at, window] of buckets.running) {
        if (at + buckets.stepMs > nowMs) continue;
        const data = yield* encodeWindow(window);
        buckets.running.delete(at);
        buckets.finished.set(at, data);
        ended.push({ tier, at, data });
        if (tier === '1m') this.finishedUntil = Math.max(this.finishedUntil, at + buckets.stepMs);
      }
    }
    this.forget(nowMs);
    return ended;
  }

  /** The buckets that run, as they are now. */
  *runningBuckets(tiers: readonly Tier[]): Steps<Bucket[]> {
    const all: Bucket[] = [];
    for (const tier of tiers)
      for (const [at, window] of this.tiers.get(tier)!.running)
        all.push({ tier, at, data: yield* encodeWindow(window) });
    return all;
  }

  has(tier: Tier, at: number): boolean {
    const { finished, running } = this.tiers.get(tier)!;
    return finished.has(at) || running.has(at);
  }

  /** Buckets that begin in the range, all as of one moment. */
  *buckets(tier: Tier, { from, to }: TimeRange): Steps<{ at: number; window: EncodedWindow }[]> {
    const { finished, running } = this.tiers.get(tier)!;
    const isIn = ([at]: readonly [number, unknown]): boolean => at >= from && at < to;
    const all = [...finished].filter(isIn);
    for (const [at, window] of [...running].filter(isIn)) all.push([at, yield* encodeWindow(window)]);
    return all.map(([at, data]) => ({ at, window: new EncodedWindow(data) }));
  }

  get bytes(): number {
    let sum = 0;
    for (const { finished } of this.tiers.values()) for (const { length } of finished.values()) sum += length;
    return sum;
  }

  /** Once a minute, however often it is read: what is added to `typicalMs` brings the minute to what it is as a whole. */
  private cap(minute: RouteWindow | undefined, fresh: RouteWindow): void {
    let all = fresh.histogram;
    if (minute !== undefined) {
      all = new Histogram();
      all.merge(minute.histogram);
      all.merge(fresh.histogram);
    }
    fresh.typicalMs = all.cappedMeanMs(CAP) * all.count - (minute?.typicalMs ?? 0);
  }

  private forget(nowMs: number): void {
    for (const { finished, stepMs, keepMs } of this.tiers.values())
      for (const at of finished.keys()) if (at + stepMs < nowMs - keepMs) finished.delete(at);
    let { bytes } = this;
    // Oldest first, the finest tier first.
    for (const { finished } of this.tiers.values()) {
      for (const [at, { length }] of finished) {
        if (bytes <= this.maxBytes) return;
        finished.delete(at);
        bytes -= length;
      }
    }
  }
}
