import { Histogram } from '../core/histogram.js';
import type { PoolSnapshot } from '../core/snapshot.js';
import type { Route } from '../request/routes.js';

/** Connections of a pool at a moment; null where the pool does not tell. */
export interface PoolSize {
  readonly max: number | null;
  readonly total: number | null;
  readonly idle: number | null;
  readonly waiting: number | null;
}

/** Waits of one route for connections of a target. */
export interface RouteWaits {
  requests: number;
  waitMs: number;
}

/** The watched pools of one target, and the waits for their connections. */
export class Pools {
  readonly waits = new Histogram();
  readonly routes = new Map<Route, RouteWaits>();
  // A pool that the application forgets is forgotten here as well.
  private readonly watched = new Map<WeakRef<object>, (pool: never) => PoolSize>();

  /** Returns what forgets the pool. */
  add<P extends object>(pool: P, readSize: (pool: P) => PoolSize): () => void {
    const ref = new WeakRef<object>(pool);
    this.watched.set(ref, readSize);
    return () => void this.watched.delete(ref);
  }

  waited(route: Route, waitMs: number): void {
    let row = this.routes.get(route);
    if (row === undefined) this.routes.set(route, (row = { requests: 0, waitMs: 0 }));
    row.requests += 1;
    row.waitMs += waitMs;
  }

  /** The sum over all pools. */
  size(): PoolSize {
    const sizes: PoolSize[] = [];
    for (const [ref, readSize] of this.watched) {
      const pool = ref.deref();
      if (pool === undefined) this.watched.delete(ref);
      else sizes.push(readSize(pool as never));
    }
    const sum = (read: (size: PoolSize) => number | null): number | null =>
      sizes.reduce<number | null>((total, size) => {
        const value = read(size);
        return total === null || value === null ? null : total + value;
      }, 0);
    const [max, total] = [sum((size) => size.max), sum((size) => size.total)];
    return { max, total, idle: sum((size) => size.idle), waiting: sum((size) => size.waiting) };
  }

  snapshot(): PoolSnapshot {
    return { ...this.size(), acquired: this.waits.count, waitMs: this.waits.figures() };
  }
}
