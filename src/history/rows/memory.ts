import { getOrAdd } from '../../core/get-or-add.js';
import { Histogram } from '../../core/histogram.js';
import { Turns } from '../../core/turns.js';
import type { TimeRange } from '../../ports/history.js';
import type { Collected } from '../collector.js';
import { EncodedWindow, encodeWindow } from './encoded-window.js';
import { startBucket, MINUTE_MS, TIERS, type Tier, type TierRule } from './tiers.js';
import { SiteWindow, type RouteWindow } from './window.js';

/** Quantile of a minute's durations as which longer ones count in `typicalMs`. */
const CAP = 0.98;

export interface Bucket {
  readonly tier: Tier;
  readonly at: number;
  readonly data: Uint8Array;
}

interface TierBuckets extends TierRule {
  readonly finished: Map<number, Uint8Array>;
  readonly running: Map<number, SiteWindow>;
}

/** Reopens a bucket that has ended when the clock was set back into it: its next row replaces the first. */
function openBucket({ finished, running }: TierBuckets, at: number): SiteWindow {
  return getOrAdd(running, at, () => {
    const data = finished.get(at);
    finished.delete(at);
    return data === undefined ? new SiteWindow() : new EncodedWindow(data).decoded();
  });
}

/**
 * This process's buckets in the three tiers, bounded in time and bytes. The caller waits for each call before the next: long work takes
 * several turns of the event loop.
 */
export class MemoryTiers {
  private readonly tiers = new Map<Tier, TierBuckets>(
    TIERS.map((rule) => [rule.tier, { ...rule, finished: new Map(), running: new Map() }]),
  );
  /** By minute, counts that {@link takeFresh} has not returned yet; null without a shared store. */
  private readonly fresh: Map<number, SiteWindow> | null;

  constructor(
    private readonly maxBytes: number,
    keepsFresh = false,
  ) {
    this.fresh = keepsFresh ? new Map() : null;
  }

  /** Adds what was counted at about `atMs`. */
  async add(atMs: number, { process, routes }: Collected): Promise<void> {
    const windows = [...this.tiers.values()].map((tier) => openBucket(tier, startBucket(atMs, tier.stepMs)));
    const [minute] = windows as [SiteWindow];
    if (this.fresh !== null) windows.push(getOrAdd(this.fresh, startBucket(atMs, MINUTE_MS), () => new SiteWindow()));
    for (const window of windows) window.process.add(process);
    const turns = new Turns();
    for (const [name, route] of routes) {
      capOutliers(minute.openRoute(name), route);
      for (const window of windows) window.openRoute(name).merge(route);
      await turns.rest();
    }
  }

  /** Counts since the last call, by minute, for a shared store. */
  takeFresh(): Bucket[] {
    const taken = [...(this.fresh ?? [])].map(([at, window]): Bucket => ({
      tier: '1m',
      at,
      data: encodeWindow(window),
    }));
    this.fresh?.clear();
    return taken;
  }

  /** Encodes and returns the buckets that have ended by `nowMs`. */
  async finish(nowMs: number): Promise<Bucket[]> {
    const ended: Bucket[] = [];
    const turns = new Turns();
    for (const [tier, { finished, running, stepMs }] of this.tiers) {
      for (const [at, window] of running) {
        if (at + stepMs > nowMs) continue;
        const data = encodeWindow(window);
        running.delete(at);
        finished.set(at, data);
        ended.push({ tier, at, data });
        await turns.rest();
      }
    }
    this.forget(nowMs);
    return ended;
  }

  runningBuckets(tiers: readonly Tier[]): Bucket[] {
    return tiers.flatMap((tier) =>
      [...this.tiers.get(tier)!.running].map(([at, window]): Bucket => ({ tier, at, data: encodeWindow(window) })),
    );
  }

  /** Buckets that begin in the range, running ones included. */
  buckets(tier: Tier, { from, to }: TimeRange): Pick<Bucket, 'at' | 'data'>[] {
    const finished = [...this.tiers.get(tier)!.finished].map(([at, data]) => ({ at, data }));
    return [...finished, ...this.runningBuckets([tier])].filter(({ at }) => at >= from && at < to);
  }

  get bytes(): number {
    let sum = 0;
    for (const { finished } of this.tiers.values()) for (const { length } of finished.values()) sum += length;
    return sum;
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

/** Sets `typicalMs` of fresh counts so that the sum of the minute is right: its 98th percentile is known only with all its requests. */
function capOutliers(minute: RouteWindow, fresh: RouteWindow): void {
  const all = new Histogram();
  all.merge(minute.histogram);
  all.merge(fresh.histogram);
  fresh.typicalMs = all.cappedMeanMs(CAP) * all.count - minute.typicalMs;
}
