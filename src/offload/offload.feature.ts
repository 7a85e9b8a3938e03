import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inOffloadThread, OFFLOAD_DATA } from '../core/offload-thread.js';
import { PerfError } from '../core/perf.error.js';
import type { OffloadStats, PerfSnapshot } from '../core/snapshot.js';
import { CpuAllowance } from '../ports/cpu-allowance.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, needProvider, type PerfExtension } from '../request/extension.js';
import { optionalPort, type Feature, type FeatureBoot } from '../request/feature.js';
import type { Job } from './call.js';
import { Dispatcher } from './dispatcher.js';
import { findSource, isTypeScript, loadHere } from './load-file.js';
import { logLevelsData } from './log-levels.js';
import { OffloadCounters } from './offload-counters.js';
import { ADD_OFFLOAD } from './offload.decorator.js';
import { down, offloadError } from './offload.errors.js';
import { fileOption, offloadOption, offloadRunOption, computePoolSize } from './offload.options.js';
import type { OffloadOptions, OffloadRunOptions, ResolvedOffloadOptions } from './offload.options.js';
import { offloadedMethods, runningInstances, type OffloadedMethod, type RunMethod } from './offloaded-methods.js';
import { Offloader } from './offloader.js';
import type { Order, ThreadPools } from './thread-pool.js';
import { Throttling } from './throttling.js';
import { loadExports, functionIn } from './worker/load.js';

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
  private readonly counters: OffloadCounters;
  private methods: ReadonlyMap<string, OffloadedMethod> = new Map();
  /** Null with `inline: true`, in a worker, and before the application has booted. */
  private dispatcher: Dispatcher | null = null;

  constructor(
    private readonly options: ResolvedOffloadOptions,
    private readonly pools: ThreadPools,
    private readonly application: PerfApplication,
    private readonly allowance: CpuAllowance | null,
    private readonly calls: UpstreamCalls | null,
  ) {
    super();
    this.counters = new OffloadCounters();
  }

  /** @throws PERF_ERR_OFFLOAD for a file that no worker can load, PERF_ERR_DECORATOR */
  async install({ modules }: FeatureBoot): Promise<void> {
    if (inOffloadThread()) return;
    this.methods = offloadedMethods(modules);
    if (this.options.inline) {
      this.application.logger.warn('offload() runs everything on the main thread: `inline: true`.');
    } else {
      requireProgram(this.pools.program);
      this.dispatcher = await this.openDispatcher();
    }
    for (const { instance } of this.methods.values()) runningInstances.set(instance, this.makeRunMethod(instance));
  }

  async start(): Promise<void> {
    await this.dispatcher?.startWarm();
  }

  snapshot(): Pick<PerfSnapshot, 'offload'> {
    return { offload: this.stats() };
  }

  override stats(): OffloadStats {
    return this.dispatcher?.stats() ?? this.counters.stats({ threads: 0, running: 0, pending: 0, throttledMs: 0 });
  }

  async idle(): Promise<void> {
    await this.dispatcher?.idle();
  }

  /** Called when deferred work has drained, since that may offload too. Methods stay offloaded: later calls are refused. */
  async close(flushMs: number): Promise<void> {
    await this.dispatcher?.close(flushMs);
  }

  override async run<T>(given: URL | string, input: unknown, options: OffloadRunOptions = {}): Promise<T> {
    const file = fileOption.read(given, 'Offloader.run(file)');
    const resolved = offloadRunOption.read(options, 'Offloader.run(options)');
    const name = basename(fileURLToPath(file));
    const order: Order = { do: 'file', name, transfer: resolved.transfer, file: file.href };
    return this.offload({ name, parameters: [input], options: resolved, order }, async () =>
      functionIn(await loadExports(file, loadHere), file.href)(input),
    ) as Promise<T>;
  }

  private makeRunMethod(instance: object): RunMethod {
    const own = new Map(
      [...this.methods.values()]
        .filter((method) => method.instance === instance)
        .map((method) => [method.methodName, method]),
    );
    return async (methodName, parameters, here) => {
      const method = own.get(methodName);
      if (method === undefined || method.options.when?.(...parameters) === false) return here();
      const { name, options } = method;
      const order: Order = { do: 'method', name, transfer: options.transfer };
      return this.offload({ name, parameters, options, order }, here);
    };
  }

  private offload(job: Job, here: () => unknown): Promise<unknown> {
    const { dispatcher } = this;
    if (dispatcher === null && (this.options.inline || inOffloadThread())) return this.runHere(job.name, here);
    if (dispatcher === null) return Promise.reject(down(job.name, BEFORE_BOOT));
    const run = (): Promise<unknown> => dispatcher.run(job);
    return this.calls === null ? run() : this.calls.timed(`worker ${job.name}`, run);
  }

  private async runHere(name: string, here: () => unknown): Promise<unknown> {
    this.counters.inline += 1;
    try {
      const value = await here();
      this.counters.ended(name, 'done');
      return value;
    } catch (error) {
      this.counters.ended(name, 'failed');
      throw error;
    }
  }

  /** Loads the module's file in a worker once. */
  private async openDispatcher(): Promise<Dispatcher> {
    const openPool = await this.pools.load();
    const cores = this.allowance?.cores() ?? { limit: null, request: null, machine: null };
    const { module, idleMs, heapLimitMb } = this.options;
    const workerData = { [OFFLOAD_DATA]: module.href, ...logLevelsData() };
    const rules = computePoolSize(this.options, cores);
    const pool = openPool({ ...rules, idleMs, heapLimitMb, workerData });
    const { report, nowMs } = this.application;
    const dispatcher = new Dispatcher(pool, rules, this.counters, new Throttling(this.allowance), report, nowMs);
    try {
      await dispatcher.loadModule();
    } catch (error) {
      const isDown = error instanceof PerfError && /^PERF_ERR_OFFLOAD_(DOWN|TIMEOUT)$/.test(error.code);
      if (!isDown) throw await this.explainFailedLoad(dispatcher, error);
    }
    return dispatcher;
  }

  private async explainFailedLoad(dispatcher: Dispatcher, error: unknown): Promise<Error> {
    await dispatcher.close(0);
    const { message } = error as Error;
    const advice = ` Compile it, or start the process with a loader (\`--import tsx\`). ${INLINE}`;
    const isSource = isTypeScript(findSource(this.options.module));
    return offloadError(`A worker cannot load \`module\` of offload(): ${message}${isSource ? advice : ''}`, error);
  }
}

/** @throws PERF_ERR_OFFLOAD where the file that workers run is missing */
function requireProgram(program: URL | null): void {
  if (program !== null && existsSync(program)) return;
  throw offloadError(
    `Workers have no program: leave nestjs-perf and piscina out of the bundle (\`external\`). ${INLINE}`,
  );
}

const BEFORE_BOOT =
  'workers of offload() start with the application. Call it in `onModuleInit()` or later, not in a factory.';
const INLINE = 'For tests: `inline: true` runs everything on the main thread.';
