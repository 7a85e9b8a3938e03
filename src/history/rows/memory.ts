import { Histogram } from '../../core/histogram.js';
import { EncodedWindow, encodeWindow } from './window-codec.js';
import { bucketOf, HOUR_MS, TIERS, type Tier } from './tiers.js';
import { SiteWindow } from './window.js';

/** Of a minute's durations: what lies above it counts as it in `typicalMs`. */
const CAP = 0.98;

/** A bucket that is over, encoded, or one that runs. */
export interface Bucket {
  readonly tier: Tier;
  readonly at: number;
  readonly data: Uint8Array;
}

/** The buckets of one tier. */
class TierBuckets {
  readonly finished = new Map<number, Uint8Array>();
  readonly running = new Map<number, SiteWindow>();
  bytes = 0;

  constructor(readonly stepMs: number) {}

  keep(at: number, data: Uint8Array): void {
    this.bytes += data.length - (this.finished.get(at)?.length ?? 0);
    this.finished.set(at, data);
  }

  forget(at: number): void {
    this.bytes -= this.finished.get(at)?.length ?? 0;
    this.finished.delete(at);
  }
}

/** What this process has seen, in the three tiers, bounded in time and bytes. */
export class MemoryTiers {
  private readonly tiers = new Map<Tier, TierBuckets>(TIERS.map(({ tier, stepMs }) => [tier, new TierBuckets(stepMs)]));
  /** No bucket before it is opened again, whatever the clock says. */
  private finishedUntil = 0;

  constructor(private readonly maxBytes: number) {}

  /** Adds what was counted at about `atMs`. */
  add(atMs: number, fresh: SiteWindow): void {
    // A clock that was set back a little; one that was far ahead is not waited for.
    if (this.finishedUntil - atMs > HOUR_MS) this.finishedUntil = 0;
    const at = Math.max(atMs, this.finishedUntil);
    this.cap(at, fresh);
    for (const { stepMs, running } of this.tiers.values()) {
      const bucket = bucketOf(at, stepMs);
      let window = running.get(bucket);
      if (window === undefined) running.set(bucket, (window = new SiteWindow()));
      window.merge(fresh);
    }
  }

  /** Ends the buckets that are over at `nowMs`, and tells them with their windows. */
  finish(nowMs: number): (Bucket & { readonly window: SiteWindow })[] {
    const ended: (Bucket & { window: SiteWindow })[] = [];
    for (const [tier, buckets] of this.tiers) {
      for (const [at, window] of buckets.running) {
        if (at + buckets.stepMs > nowMs) continue;
        const data = encodeWindow(window);
        buckets.running.delete(at);
        buckets.keep(at, data);
        ended.push({ tier, at, data, window });
        if (tier === '1m') this.finishedUntil = Math.max(this.finishedUntil, at + buckets.stepMs);
      }
    }
    this.forget(nowMs);
    return ended;
  }

  /** The buckets that run, as they are now. */
  runningBuckets(): Bucket[] {
    const all: Bucket[] = [];
    for (const [tier, { running }] of this.tiers)
      for (const [at, window] of running) all.push({ tier, at, data: encodeWindow(window) });
    return all;
  }

  has(tier: Tier, at: number): boolean {
    const { finished, running } = this.tiers.get(tier)!;
    return finished.has(at) || running.has(at);
  }

  /** Buckets that begin in the range, all as of one moment. */
  buckets(tier: Tier, from: number, to: number): { at: number; window: EncodedWindow }[] {
    const { finished, running } = this.tiers.get(tier)!;
    const isIn = ([at]: readonly [number, unknown]): boolean => at >= from && at < to;
    const ended = [...finished].filter(isIn).map(([at, data]) => ({ at, window: new EncodedWindow(data) }));
    const open = [...running].filter(isIn);
    return [...ended, ...open.map(([at, window]) => ({ at, window: new EncodedWindow(encodeWindow(window)) }))];
  }

  get bytes(): number {
    return [...this.tiers.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Once a minute, however often somebody looks: what is added to `typicalMs` brings the minute to what it is as a whole. */
  private cap(at: number, { routes }: SiteWindow): void {
    const { stepMs, running } = this.tiers.get('1m')!;
    const minute = running.get(bucketOf(at, stepMs));
    for (const [name, route] of routes) {
      const known = minute?.routes.get(name);
      const all = new Histogram();
      if (known !== undefined) all.merge(known.histogram);
      all.merge(route.histogram);
      route.typicalMs = all.cappedMeanMs(CAP) * all.count - (known?.typicalMs ?? 0);
    }
  }

  private forget(nowMs: number): void {
    for (const { tier, keepMs } of TIERS) {
      const buckets = this.tiers.get(tier)!;
      for (const at of buckets.finished.keys()) if (at + buckets.stepMs < nowMs - keepMs) buckets.forget(at);
    }
    // Oldest first, the finest tier first.
    for (const buckets of this.tiers.values()) {
      for (const at of buckets.finished.keys()) {
        if (this.bytes <= this.maxBytes) return;
        buckets.forget(at);
      }
    }
  }
}
