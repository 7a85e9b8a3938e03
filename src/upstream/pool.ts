import { Histogram } from '../core/histogram.js';
import type { PoolSnapshot } from '../core/snapshot.js';

/** Connections of a pool at a moment; null where the pool has no such count. */
export interface PoolSize {
  readonly max: number | null;
  readonly total: number | null;
  readonly idle: number | null;
  readonly waiting: number | null;
}

/** The watched pools of one target, and the waits for their connections. */
export class Pools {
  readonly waits = new Histogram();
  // Weak, so that a pool which the application drops is not kept here.
  private readonly watched = new Map<WeakRef<object>, (pool: never) => PoolSize>();

  add<P extends object>(pool: P, readSize: (pool: P) => PoolSize): void {
    this.watched.set(new WeakRef<object>(pool), readSize);
  }

  size(): PoolSize {
    const sizes: PoolSize[] = [];
    for (const [ref, readSize] of this.watched) {
      const pool = ref.deref();
      if (pool === undefined) this.watched.delete(ref);
      else sizes.push(readSize(pool as never));
    }
    const sum = (count: keyof PoolSize): number | null =>
      sizes.some((size) => size[count] === null) ? null : sizes.reduce((total, size) => total + size[count]!, 0);
    return { max: sum('max'), total: sum('total'), idle: sum('idle'), waiting: sum('waiting') };
  }

  snapshot(): PoolSnapshot {
    return { ...this.size(), acquired: this.waits.count, waitMs: this.waits.figures() };
  }
}
