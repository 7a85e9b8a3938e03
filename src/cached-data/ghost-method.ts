import { percent } from '../core/figures.js';
import type { CachedMethodStats, Finding } from '../core/snapshot.js';
import { itemsOf, keyMaker, type MakeKey } from './cache-key.js';
import type { ResolvedCached } from './cached.options.js';
import { Ghost, type GhostHits } from './ghost.js';
import type { GhostRoutes } from './ghost-routes.js';
import type { CacheParts } from './method-cache.js';
import { MethodCounters } from './method-counters.js';
import type { Source, StandIn } from './stand-in.js';

/** Fewer calls say too little. */
const MIN_CALLS = 100;
/** A `ttlMs` that saves nearly as much as the longest is the better one: its values are younger. */
const NEARLY = 0.9;
const MIN_SHARE = 0.2;
/** A route whose time is something else is told nothing. */
const MIN_OF_ROUTE = 0.1;
const MAX_ROUTES = 3;

/** Of a `@Cached({ ghost: true })` method: every call is made, in its request, as if there were no cache. */
export class GhostMethod implements StandIn {
  private readonly counters = new MethodCounters();
  private readonly ghost = new Ghost();
  private readonly keyOf: MakeKey;
  readonly keepMs = 0;

  constructor(
    readonly method: string,
    private readonly source: Source,
    private readonly options: Pick<ResolvedCached, 'batch' | 'key'>,
    private readonly parts: CacheParts,
    private readonly routes: GhostRoutes,
  ) {
    this.keyOf = keyMaker(method, options.key);
  }

  call(args: unknown[]): Promise<unknown> {
    const { counters, ghost, parts } = this;
    const startedMs = parts.nowMs();
    const keys = this.keysOf(args);
    const hits = keys.map((key) => ghost.called(key, startedMs)).filter((hit): hit is GhostHits => hit !== null);
    counters.misses += keys.length;
    const ended = this.routes.begin(startedMs);
    // Asked once: a query builder is sent each time that somebody waits for it.
    const result = new Promise((resolve) => resolve(this.source(...args)));
    const end = (failed: boolean): void => {
      const endedMs = parts.nowMs();
      const ms = endedMs - startedMs;
      ended(endedMs);
      counters.loads += 1;
      counters.loadMs.record(ms);
      if (!failed) for (const hit of hits) ghost.took(hit, ms / keys.length);
      else {
        counters.failed += 1;
        // No cache keeps a failure.
        for (const key of keys) ghost.forget(key);
      }
    };
    result.then(
      () => end(false),
      () => end(true),
    );
    return result;
  }

  drop(): void {}
  missed(): void {}
  close(): void {}

  stats(): CachedMethodStats {
    return this.counters.stats(this.method, 0, this.ghost.figures());
  }

  /** Where it is called in requests, by route. */
  findings(): readonly Finding[] {
    const { misses, loadMs } = this.counters;
    if (misses < MIN_CALLS) return [];
    const figures = this.ghost.figures();
    const most = Math.max(...figures.map(({ savedMsPerCall }) => savedMsPerCall));
    const best = figures.find(({ savedMsPerCall }) => savedMsPerCall >= most * NEARLY)!;
    if (best.hitRatio < MIN_SHARE || best.savedMsPerCall < 1) return [];
    const cached = `\`@Cached({ ttlMs: ${literal(best.ttlMs)} })\` would have saved`;
    const savedShare = Math.min(1, best.savedMsPerCall / loadMs.meanMs);
    const ofRoutes = this.routes.shares().filter(({ share }) => share * savedShare >= MIN_OF_ROUTE);
    if (ofRoutes.length > 0) {
      return ofRoutes.slice(0, MAX_ROUTES).map(({ route, share, meanMs }) => {
        const saved = share * savedShare;
        const text =
          `${route}: ${percent(share)} of its time is ${this.method}; ` +
          `${cached} ${(saved * meanMs).toFixed(0)} ms a request, ${percent(saved)} of its time`;
        return { kind: 'worth-caching', route, text };
      });
    }
    const text =
      `${cached} ${best.savedMsPerCall.toFixed(0)} of the ` +
      `${loadMs.meanMs.toFixed(0)} ms that a call of ${this.method} takes: ${percent(best.hitRatio)} of its calls ask for what was loaded within that time`;
    return [{ kind: 'worth-caching', route: null, text }];
  }

  /** A call without a key is none of the ghost's: with a real cache it would be refused. */
  keysOf(args: readonly unknown[]): readonly string[] {
    try {
      return this.options.batch ? itemsOf(args, this.method).map((item) => this.keyOf([item])) : [this.keyOf(args)];
    } catch (error) {
      this.parts.report.report(
        `ghost of "${this.method}"`,
        `"${this.method}" could not be cached: ${(error as Error).message}`,
      );
      return [];
    }
  }
}

/** `60_000` */
const literal = (ms: number): string => String(ms).replaceAll(/\B(?=(\d{3})+$)/g, '_');
