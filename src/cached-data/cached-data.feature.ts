import type { Type } from '@nestjs/common';
import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import type { CachedMethodStats, PerfSnapshot } from '../core/snapshot.js';
import type { HealthReason } from '../ports/overview.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, needProvider, type PerfExtension } from '../request/extension.js';
import { optionalPort, type Feature, type FeatureBoot } from '../request/feature.js';
import { keyMaker } from './cache-key.js';
import { Batched, OneByOne } from './cached-method.js';
import type { ResolvedCache } from './cached.options.js';
import { decoratedInstances } from './decorated-instances.js';
import { cachedInstances, type Declared } from './decorators.js';
import type { Level2 } from './level2.js';
import type { CacheParts, MethodCache, Source } from './method-cache.js';
import { PerfCache, type CachedMethods } from './perf-cache.js';
import { PreloadedMethod } from './preloaded-method.js';
import type { MakeBound } from './values.js';

/** A decorated method of one instance, and the cache of its calls. */
interface Placed {
  readonly instance: object;
  readonly property: string;
  readonly declared: Declared;
  readonly calls: MethodCache<any>;
}

/** Cached and preloaded data of one application. */
class CachedDataFeature extends PerfCache implements Feature {
  readonly [FEATURE] = true;
  private readonly placed: Placed[] = [];
  private readonly preloaded: PreloadedMethod[] = [];
  private level2: Level2 | null = null;

  constructor(
    private readonly options: ResolvedCache,
    private readonly loadBound: () => Promise<MakeBound>,
    private readonly host: PerfApplication,
    private readonly upstream: UpstreamCalls | null,
  ) {
    super();
  }

  async install({ modules }: FeatureBoot): Promise<void> {
    const instances = decoratedInstances(modules);
    const makeBound = await this.loadBound();
    const bound = makeBound(this.options.maxEntries, this.host.cacheBytes(this.options.maxBytes));
    const parts = this.parts();
    this.level2 = await this.openLevel2();
    const names = instances.map(({ name }) => name);
    for (const { instance, name, isMinified, methods } of instances) {
      const isAlone = names.filter((other) => other === name).length === 1;
      for (const [property, declared] of methods) {
        const method = `${name}.${property}`;
        const source: Source = (...args) => declared.method.apply(instance, args);
        if (declared.kind === 'preloaded') {
          const preloaded = new PreloadedMethod(method, source, declared.options, parts);
          this.preloaded.push(preloaded);
          this.place({ instance, property, declared, calls: preloaded });
          continue;
        }
        const { options } = declared;
        const level2 = options.level2 ? this.level2For(method, isAlone, isMinified) : null;
        const makeKey = keyMaker(method, options.key);
        const rules = { ...options, method, makeKey, isPlain: options.key === null, bound, level2 };
        const calls = new (options.batch ? Batched : OneByOne)(source, rules, parts);
        this.place({ instance, property, declared, calls });
      }
    }
  }

  async start(): Promise<void> {
    await Promise.all(this.preloaded.map((method) => method.start()));
  }

  override for<T extends object>(target: Type<T>): CachedMethods<T> {
    return new Proxy({} as CachedMethods<T>, {
      get: (_methods, name) =>
        typeof name === 'string'
          ? {
              invalidate: (...args: unknown[]) => this.invalidate(target, name, ...args),
              invalidateAll: () => this.invalidateAll(target, name),
            }
          : undefined,
    });
  }

  override invalidate(target: Type, method: string, ...args: unknown[]): void {
    for (const { calls } of this.findPlaced(target, method, 'invalidate')) {
      for (const key of calls.makeKeys(args)) this.forget(calls, key);
    }
  }

  override invalidateAll(target: Type, method?: string): void {
    for (const { calls } of this.findPlaced(target, method ?? null, 'invalidateAll')) this.forget(calls, null);
  }

  override stats(): readonly CachedMethodStats[] {
    return this.placed.map(({ calls }) => calls.stats());
  }

  snapshot(): Pick<PerfSnapshot, 'cache'> {
    return { cache: this.stats() };
  }

  reasons(): readonly HealthReason[] {
    const overdue = this.preloaded.flatMap((method) => method.overdue() ?? []);
    return overdue.map((text) => ({ about: 'cached-data', text }));
  }

  unready(): readonly string[] {
    return this.preloaded.flatMap((method) =>
      method.hasLoaded ? [] : `preloaded data is missing: "${method.method}"`,
    );
  }

  /** Called when deferred work has drained, since that may wait for loads. */
  async close(): Promise<void> {
    for (const { instance, declared, calls } of this.placed) {
      const methods = cachedInstances.get(instance);
      // The instance may be a provider of a newer application.
      if (methods?.get(declared.method) === calls) methods.delete(declared.method);
      if (methods?.size === 0) cachedInstances.delete(instance);
      calls.close();
    }
    await this.level2?.close();
  }

  private place(placed: Placed): void {
    const { instance, declared, calls } = placed;
    const methods = cachedInstances.get(instance) ?? new Map<object, MethodCache<any>>();
    cachedInstances.set(instance, methods.set(declared.method, calls));
    this.placed.push(placed);
  }

  /** Level 2, for a method with a unique name: providers of one name would mix values, and so would builds that reuse a minified name. */
  private level2For(method: string, isAlone: boolean, isMinified: boolean): Level2 | null {
    if (this.level2 === null || (isAlone && !isMinified)) return this.level2;
    const cause = `"${method}" stays in level 1`;
    const why = isMinified
      ? 'its class has a name of at most three characters, as minifiers give: the next build may give it to another class. Keep class names (`keepNames` of esbuild), or choose a longer one'
      : 'several providers have this name. Give each a token of its own';
    this.host.report.report(cause, `${cause}: ${why}.`);
    return null;
  }

  private parts(): CacheParts {
    const { upstream } = this;
    const { report } = this.host;
    return {
      // Read from the global at each call: fake timers of tests replace it.
      nowMs: () => performance.now(),
      report,
      waits: (method, wait) => (upstream === null ? wait() : upstream.timed(`cache ${method}`, wait)),
    };
  }

  private async openLevel2(): Promise<Level2 | null> {
    if (this.options.level2 === null) return null;
    return this.options.level2.open({
      invalidated: (method, key) => {
        for (const { calls } of this.placed) if (calls.method === method) calls.drop(key);
      },
      missed: () => this.placed.forEach(({ calls }) => calls.missed()),
      report: (cause, message) => this.host.report.report(cause, message),
    });
  }

  private forget(calls: MethodCache<any>, key: string | null): void {
    calls.drop(key);
    this.level2?.invalidate(calls.method, key, calls.keepMs);
  }

  /** One method of all instances of a class; null: all methods. */
  private findPlaced(target: unknown, method: string | null, caller: string): Placed[] {
    const isClass = typeof target === 'function';
    const found = this.placed.filter(
      ({ instance, property }) => isClass && instance instanceof target && (method === null || property === method),
    );
    if (found.length > 0) return found;
    const asked = `${isClass ? target.name : describe(target)}${method === null ? '' : `.${method}`}`;
    throw new PerfError(
      'PERF_ERR_OPTION',
      `\`PerfCache.${caller}()\` was called for "${asked}", which is no @Cached() or @Preloaded() method of a provider. ` +
        `There are: ${this.placed.map(({ calls }) => calls.method).join(', ') || 'none'}.`,
    );
  }
}

needProvider(PerfCache, { name: 'cache', decorator: 'PerfCache', add: 'extensions: [cache()]' });

/** The extension; `loadBound` loads the package that bounds the memory of all values. */
export const cachedData = (options: ResolvedCache, loadBound: () => Promise<MakeBound>): PerfExtension => ({
  name: 'cache',
  providers: [
    {
      provide: PerfCache,
      inject: [PerfApplication, optionalPort(UpstreamCalls)],
      useFactory: (...given: [PerfApplication, UpstreamCalls | null]) =>
        new CachedDataFeature(options, loadBound, ...given),
    },
  ],
});
