import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { basename } from 'node:path';
import { isMinified } from '../core/class-name.js';
import { CpuAllowance } from '../ports/cpu-allowance.js';
import { inOffloadThread, OFFLOAD_DATA } from '../core/offload-thread.js';
import { currentRequest } from '../request/request-state.js';
import type { OffloadStats, PerfSnapshot } from '../core/snapshot.js';
import { likeMethod, putOn } from '../core/stand-in.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, needProvider, type PerfExtension } from '../request/extension.js';
import { optionalPort, type Feature, type FeatureBoot } from '../request/feature.js';
import type { Job } from './call.js';
import { Dispatcher } from './dispatcher.js';
import { OffloadCounters } from './offload-counters.js';
import { loadHere } from './load-here.js';
import { logLevelsData } from './log-levels.js';
import { misplaced } from './offload.errors.js';
import { fileOption, offloadOption, offloadRunOption, sizeOf } from './offload.options.js';
import type { OffloadOptions, OffloadRunOptions, ResolvedOffloadOptions } from './offload.options.js';
import { ADD_OFFLOAD } from './offload.decorator.js';
import { offloadedMethods, type OffloadedMethod } from './offloaded-methods.js';
import { Offloader } from './offloader.js';
import type { OffloadContext, ThreadPool, ThreadPoolOptions, ThreadPools } from './thread-pool.js';
import { Throttling } from './throttling.js';
import { obstacleTo } from './where.js';
import { exportsOf, functionIn } from './worker/load.js';

/** For a worker to start with the application. */
const WARM_TIMEOUT_MS = 30_000;

needProvider(Offloader, { name: 'offload', decorator: 'Offloader', add: ADD_OFFLOAD });

/** The extension of one application. */
export function offloadExtension(options: OffloadOptions, pools: ThreadPools): PerfExtension {
  const resolved = offloadOption.read(options, 'offload');
  return {
    name: 'offload',
    providers: [
      {
        provide: Offloader,
        inject: [PerfApplication, ...[CpuAllowance, UpstreamCalls].map(optionalPort)],
        useFactory: (...given: [PerfApplication, CpuAllowance | null, UpstreamCalls | null]) =>
          new OffloadFeature(resolved, pools, ...given),
      },
    ],
  };
}

/** Work in worker threads, for one application. */
class OffloadFeature extends Offloader implements Feature {
  readonly [FEATURE] = true;
  // A cached value needs no worker.
  readonly innermost = true;
  private readonly counters: OffloadCounters;
  private methods: ReadonlyMap<string, OffloadedMethod> = new Map();
  /** Null: everything runs on the main thread, as all does while the application is still made. */
  private openPool: ((options: ThreadPoolOptions) => ThreadPool) | null = null;
  private dispatcher: Dispatcher;
  /** What gives the methods back. */
  private readonly undo: (() => void)[] = [];

  constructor(
    private readonly options: ResolvedOffloadOptions,
    private readonly pools: ThreadPools,
    private readonly host: PerfApplication,
    private readonly allowance: CpuAllowance | null,
    private readonly calls: UpstreamCalls | null,
  ) {
    super();
    this.counters = new OffloadCounters(host.report);
    this.dispatcher = this.dispatcherFor(1, 0);
  }

  async install({ modules }: FeatureBoot): Promise<void> {
    if (inOffloadThread()) return;
    this.methods = offloadedMethods(modules);
    const { inline, module } = this.options;
    const obstacle = inline
      ? '`inline: true`'
      : (obstacleOf(this.pools.program) ?? obstacleTo(module) ?? minifiedIn([...this.methods.values()]));
    if (obstacle !== null) {
      this.host.logger.warn(`offload() runs everything on the main thread, and starts no worker: ${obstacle}.`);
    } else {
      this.openPool = await this.pools.load();
      const { threads, maxPending } = sizeOf(this.options, this.cores());
      this.dispatcher = this.dispatcherFor(threads, maxPending);
    }
    for (const method of this.methods.values()) this.standFor(method);
  }

  /** @throws PERF_ERR_DECORATOR for a method that no worker has */
  async start(): Promise<void> {
    const threads = this.openPool === null ? 0 : Math.min(this.options.warm, this.options.threads ?? Infinity);
    const booting = Array.from({ length: threads }, () => this.dispatcher.run(BOOT, this.contextFor(WARM_TIMEOUT_MS)));
    for (const names of (await Promise.all(booting)) as (readonly string[] | null)[]) {
      const lacking = [...this.methods.keys()].find((name) => names?.includes(name) === false);
      if (lacking === undefined) continue;
      const provider = lacking.slice(0, lacking.lastIndexOf('.'));
      throw misplaced(lacking, `no worker has it. Add ${provider} to the providers of ${this.options.module.href}.`);
    }
  }

  snapshot(): Pick<PerfSnapshot, 'offload'> {
    return { offload: this.stats() };
  }

  override stats(): OffloadStats {
    return this.dispatcher.stats();
  }

  idle(): Promise<void> {
    return this.dispatcher.idle();
  }

  /** After deferred work has drained, which may call as well. */
  async close(): Promise<void> {
    for (const undo of this.undo.splice(0)) undo();
    await this.dispatcher.close(this.host.flushTimeoutMs);
  }

  override async run<T>(given: URL | string, input: unknown, options: OffloadRunOptions = {}): Promise<T> {
    const file = fileOption.read(given, 'Offloader.run(file)');
    const resolved = offloadRunOption.read(options, 'Offloader.run(options)');
    const name = basename(fileURLToPath(file));
    const load = (href: string): Promise<unknown> => loadHere(href, this.pools.program);
    return this.offload({
      name,
      parameters: [input],
      options: resolved,
      order: { do: 'file', name, transfer: resolved.transfer, file: file.href },
      here: async () => functionIn(await exportsOf(file, load), file.href)(input),
    }) as Promise<T>;
  }

  /** @throws PERF_ERR_DECORATOR */
  private standFor({ name, methodName, instance, options }: OffloadedMethod): void {
    const method = instance[methodName] as (...parameters: unknown[]) => Promise<unknown>;
    const { transfer, when } = options;
    const stands = async (...parameters: unknown[]): Promise<unknown> => {
      const here = async (): Promise<unknown> => method.apply(instance, parameters);
      if (when !== null && !when(...parameters)) return here();
      return this.offload({ name, parameters, options, order: { do: 'method', name, transfer }, here });
    };
    const undo = putOn(instance, methodName, likeMethod(stands, method));
    if (undo === null) throw misplaced(name, 'its provider is frozen, so that nothing can stand for the method.');
    this.undo.push(undo);
  }

  private offload(job: Job): Promise<unknown> {
    if (this.openPool === null) return this.dispatcher.here(job);
    const run = (): Promise<unknown> => this.dispatcher.run(job, this.contextFor(job.options.timeoutMs));
    return this.calls === null ? run() : this.calls.timed(`worker ${job.name}`, run);
  }

  private contextFor(timeoutMs: number): OffloadContext {
    const request = currentRequest(this.host.requests);
    return {
      requestId: request?.id ?? null,
      traceparent: request?.traceparent ?? null,
      variants: request?.variants ?? null,
      deadlineAt: Date.now() + timeoutMs,
    };
  }

  private cores() {
    return this.allowance?.cores() ?? { limit: null, request: null, machine: null };
  }

  private dispatcherFor(threads: number, maxPending: number): Dispatcher {
    const { report, nowMs } = this.host;
    const { module, idleMs, heapLimitMb } = this.options;
    const warm = Math.min(this.options.warm, threads);
    const open = (stillborn: (error: Error) => void): ThreadPool => {
      const workerData = { [OFFLOAD_DATA]: module.href, ...logLevelsData() };
      return this.openPool!({ threads, heapLimitMb, workerData, stillborn });
    };
    const throttling = new Throttling(this.allowance);
    return new Dispatcher({ threads, warm, idleMs, open }, maxPending, this.counters, throttling, report, nowMs);
  }
}

/** Why workers have nothing to run, in words; null when they have. */
function obstacleOf(program: URL | null): string | null {
  if (program === null) return 'these are the sources of nestjs-perf';
  if (existsSync(program)) return null;
  return `${fileURLToPath(program)} is missing. Leave nestjs-perf and piscina out of the bundle (\`external\`)`;
}

/** In the module's bundle another class may have that name. */
function minifiedIn(methods: readonly OffloadedMethod[]): string | null {
  const renamed = methods.find(
    ({ instance }) => typeof instance.constructor === 'function' && isMinified(instance.constructor),
  );
  if (renamed === undefined) return null;
  return `a minifier has named the class of "${renamed.name}". Keep class names (\`keepNames\` of esbuild, \`keep_classnames\` of terser)`;
}

/** Starts the application of a worker. */
const BOOT: Job = {
  name: 'boot',
  isOwn: true,
  parameters: [],
  options: { timeoutMs: WARM_TIMEOUT_MS, transfer: false },
  order: { do: 'boot' },
  here: async () => null,
};
