import type { Type } from '@nestjs/common';
import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import type { CachedMethodStats, PerfSnapshot } from '../core/snapshot.js';
import { LatencyFigures } from '../ports/latency-figures.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, needProvider, type PerfExtension } from '../request/extension.js';
import { optionalPort, type Feature, type FeatureBoot } from '../request/feature.js';
import type { MakeBound } from './bound.js';
import { keyMaker } from './cache-key.js';
import { Batched, OneByOne } from './cached-method.js';
import type { ResolvedCache, ResolvedCached } from './cached.options.js';
import { decoratedInstances } from './decorated-instances.js';
import { GhostMethod } from './ghost-method.js';
import { GhostRoutes } from './ghost-routes.js';
import type { Level2 } from './level2.js';
import type { CacheParts } from './method-cache.js';
import { MethodLevel2 } from './method-level2.js';
import { PerfCache } from './perf-cache.js';
import { PreloadedMethod } from './preloaded-method.js';
import { Readings } from './readings.js';
import { freezeDeep } from './value.js';
import { place, type Source, type StandIn } from './stand-in.js';

interface Placed {
  readonly instance: object;
  readonly property: string;
  readonly standIn: StandIn;
  readonly takeAway: () => void;
}

/** Cached and preloaded data of one application. */
class CachedDataFeature extends PerfCache implements Feature {
  readonly [FEATURE] = true;
  private readonly placed: Placed[] = [];
  private readonly preloaded: PreloadedMethod[] = [];
  private level2: Level2 | null = null;

  constructor(
    private readonly options: ResolvedCache,
    private readonly loadBounds: () => Promise<MakeBound>,
    private readonly host: PerfApplication,
    private readonly upstream: UpstreamCalls | null,
    private readonly latency: LatencyFigures | null,
  ) {
    super();
  }

  async install({ modules }: FeatureBoot): Promise<void> {
    const instances = decoratedInstances(modules);
    const makeBound = await this.loadBounds();
    const { maxEntries, maxBytes } = this.options;
    const bound = makeBound({ maxEntries, maxBytes: this.host.cacheBytes(maxBytes) });
    const parts = this.parts();
    this.level2 = await this.openLevel2();
    const names = instances.map(({ name }) => name);
    for (const { instance, name, isMinified, methods } of instances) {
      const isAlone = names.filter((other) => other === name).length === 1;
      for (const [property, declared] of methods) {
        const method = `${name}.${property}`;
        this.place(instance, property, (source) => {
          if (declared.kind === 'preloaded') {
            const preloaded = new PreloadedMethod(method, source, declared.options, parts);
            this.preloaded.push(preloaded);
            return preloaded;
          }
          const { options } = declared;
          if (options.ghost) {
            return new GhostMethod(method, source, options, parts, new GhostRoutes(this.host.requests, this.latency));
          }
          const own = options.maxEntries;
          const bounds = own === null ? [bound] : [bound, makeBound({ maxEntries: own, maxBytes: null })];
          const level2 = this.level2For(options, method, isAlone, isMinified);
          const keyOf = keyMaker(method, options.key);
          const rules = { ...options, method, keyOf, isPlain: options.key === null, bounds, level2 };
          return new (options.batch ? Batched : OneByOne)(source, rules, parts);
        });
      }
    }
  }

  async start(): Promise<void> {
    await Promise.all(this.preloaded.map((method) => method.start()));
  }

  override invalidate(target: Type, method: string, ...args: unknown[]): void {
    for (const { standIn } of this.of(target, method, 'invalidate')) {
      for (const key of standIn.keysOf(args)) this.forget(standIn, key);
    }
  }

  override invalidateAll(target: Type, method?: string): void {
    for (const { standIn } of this.of(target, method, 'invalidateAll')) this.forget(standIn, null);
  }

  override stats(): readonly CachedMethodStats[] {
    return this.placed.map(({ standIn }) => standIn.stats());
  }

  snapshot(): Pick<PerfSnapshot, 'cache' | 'findings'> {
    const findings = this.placed.flatMap(({ standIn }) => standIn.findings?.() ?? []);
    return { cache: this.stats(), findings };
  }

  reasons(): readonly string[] {
    return this.preloaded.flatMap((method) => method.overdue() ?? []);
  }

  unready(): readonly string[] {
    return this.preloaded.flatMap((method) =>
      method.hasLoaded ? [] : `preloaded data is missing: "${method.method}"`,
    );
  }

  /** Not before: deferred work that drains may still wait for loads. */
  async close(): Promise<void> {
    for (const { standIn, takeAway } of this.placed) {
      takeAway();
      standIn.close();
    }
    await this.level2?.close();
  }

  private place(instance: object, property: string, make: (source: Source) => StandIn): void {
    let standIn!: StandIn;
    const takeAway = place(instance, property, (source) => (standIn = make(source)));
    this.placed.push({ instance, property, standIn, takeAway });
  }

  /** Two instances that have one name would read each other's values, and so would two builds that give a name to two classes. */
  private level2For(
    { batch, level2 }: ResolvedCached,
    method: string,
    isAlone: boolean,
    isMinified: boolean,
  ): MethodLevel2 | null {
    if (this.level2 === null || !level2) return null;
    if (isAlone && !isMinified) return new MethodLevel2(this.level2, method, batch, this.host.report);
    const cause = `"${method}" stays in level 1`;
    const why = isMinified
      ? 'a minifier has named its class, and another build gives that name to another one. Keep class names (`keepNames` of esbuild)'
      : 'several providers have this name. Give each a token of its own';
    this.host.report.report(cause, `${cause}: ${why}.`);
    return null;
  }

  private parts(): CacheParts {
    const { upstream } = this;
    const { report } = this.host;
    return {
      // The global, as clocks of tests replace it.
      nowMs: () => performance.now(),
      readings: new Readings(),
      report,
      freeze: process.env['NODE_ENV'] === 'production' ? () => {} : (value, method) => this.freeze(value, method),
      waits: (method, wait) => (upstream === null ? wait() : upstream.timed(`cache ${method}`, wait)),
    };
  }

  private freeze(value: unknown, method: string): void {
    try {
      freezeDeep(value);
    } catch (error) {
      const cause = `A value of "${method}" could not be frozen`;
      this.host.report.report(cause, `${cause}: ${String(error)}`);
    }
  }

  private async openLevel2(): Promise<Level2 | null> {
    if (this.options.level2 === null) return null;
    return this.options.level2.open({
      invalidated: (method, key) => {
        for (const { standIn } of this.placed) if (standIn.method === method) standIn.drop(key);
      },
      missed: () => this.placed.forEach(({ standIn }) => standIn.missed()),
      report: (cause, message) => this.host.report.report(cause, message),
    });
  }

  private forget(standIn: StandIn, key: string | null): void {
    standIn.drop(key);
    this.level2?.invalidate(standIn.method, key, standIn.keepMs);
  }

  /** The methods of all instances of a class. */
  private of(target: unknown, method: string | undefined, caller: string): Placed[] {
    const isClass = typeof target === 'function';
    const found = this.placed.filter(
      ({ instance, property }) =>
        isClass && instance instanceof target && (method === undefined || property === method),
    );
    if (found.length > 0) return found;
    const asked = `${isClass ? target.name : describe(target)}${method === undefined ? '' : `.${method}`}`;
    throw new PerfError(
      'PERF_ERR_OPTION',
      `\`PerfCache.${caller}()\` was called for "${asked}", which is no @Cached() or @Preloaded() method of a provider. ` +
        `There are: ${this.placed.map(({ standIn }) => standIn.method).join(', ') || 'none'}.`,
    );
  }
}

needProvider(PerfCache, { name: 'cache', decorator: 'PerfCache', add: 'extensions: [cache()]' });

/** The extension; `loadBounds` brings the package that keeps what is used. */
export const cachedData = (options: ResolvedCache, loadBounds: () => Promise<MakeBound>): PerfExtension => ({
  name: 'cache',
  providers: [
    {
      provide: PerfCache,
      inject: [PerfApplication, ...[UpstreamCalls, LatencyFigures].map(optionalPort)],
      useFactory: (...given: [PerfApplication, UpstreamCalls | null, LatencyFigures | null]) =>
        new CachedDataFeature(options, loadBounds, ...given),
    },
  ],
});
