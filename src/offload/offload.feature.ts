import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Logger, type LogLevel } from '@nestjs/common';
import { inOffloadThread, offloadData } from '../core/offload-thread.js';
import type { OffloadStats, PerfSnapshot } from '../core/snapshot.js';
import { CpuAllowance } from '../ports/cpu-allowance.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, needProvider, type PerfExtension } from '../request/extension.js';
import { optionalPort, type Feature, type FeatureBoot } from '../request/feature.js';
import type { Job } from './call.js';
import { Dispatcher } from './dispatcher.js';
import { findSource, functionIn, isTypeScript, loadExports } from './load-file.js';
import { OffloadCounters } from './offload-counters.js';
import { ADD_OFFLOAD } from './offload.decorator.js';
import { down, offloadError } from './offload.errors.js';
import { fileOption, offloadOption, offloadRunOption, computePoolSize } from './offload.options.js';
import type { OffloadOptions, OffloadRunOptions, PoolOptions, ResolvedOffloadOptions } from './offload.options.js';
import { offloadedMethods, runningInstances, type RunMethod } from './offloaded-methods.js';
import type { ThreadPools } from './thread-pool.js';

/** Runs files in worker threads, and counts the gain. Injection token and type. */
export abstract class Offloader {
  /**
   * Calls the default export of `file` with `input`, in a worker, without any application of Nest's.
   * @throws PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, PERF_ERR_OPTION, and what the file throws
   */
  abstract run<T>(file: URL | string, input: unknown, options?: OffloadRunOptions): Promise<T>;
  /** Returns the time that the loop was spared, and the cost of cloning. */
  abstract stats(): OffloadStats;
}
needProvider(Offloader, { name: 'offload', decorator: 'Offloader', add: ADD_OFFLOAD });

const INLINE = 'For tests: `inline: true` runs everything on the main thread.';
/** All levels: early Nest 11 has no list of them. */
const LEVELS: readonly LogLevel[] = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'];
/** Levels where Nest enables none, because none was chosen or logging is off: messages that must not be missed. */
const LEAST: readonly LogLevel[] = ['warn', 'error', 'fatal'];

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
    this.counters = new OffloadCounters(allowance);
  }

  /** @throws PERF_ERR_OFFLOAD for a file that no worker can load, PERF_ERR_DECORATOR */
  async install({ modules }: FeatureBoot): Promise<void> {
    if (inOffloadThread()) return;
    const methods = offloadedMethods(modules);
    if (this.options.inline) {
      this.application.logger.warn('offload() runs everything on the main thread: `inline: true`.');
    } else {
      this.dispatcher = await this.openDispatcher();
    }
    for (const { instance } of methods.values()) runningInstances.set(instance, this);
  }

  /** The log names a worker that could not start; calls are refused until one can. */
  async start(): Promise<void> {
    const { dispatcher, options } = this;
    if (dispatcher === null) return;
    await Promise.allSettled(Array.from({ length: options.warm }, () => dispatcher.prepare('boot')));
  }

  snapshot(): Pick<PerfSnapshot, 'offload'> {
    return { offload: this.stats() };
  }

  override stats(): OffloadStats {
    return this.dispatcher?.stats() ?? this.counters.stats({ threads: 0, running: 0, pending: 0 });
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
    const job: Job = { do: 'file', name, file: file.href, parameters: [input], options: resolved };
    return this.offload(job, async () => functionIn(await loadExports(file, null), file.href)(input)) as Promise<T>;
  }

  /** Runs a method of an instance of this application; `here`: directly. */
  async runMethod(...[instance, methodName, options, parameters, here]: Parameters<RunMethod>): Promise<unknown> {
    if (options.when?.(...parameters) === false) return here();
    const name = `${instance.constructor.name}.${methodName}`;
    return this.offload({ do: 'method', name, file: this.options.module.href, parameters, options }, here);
  }

  private offload(job: Job, here: () => unknown): Promise<unknown> {
    const { calls, dispatcher, options } = this;
    if (options.inline || inOffloadThread()) return this.runHere(here);
    if (dispatcher === null) return Promise.reject(down(job.name, BEFORE_BOOT));
    const run = (): Promise<unknown> => dispatcher.run(job);
    return calls === null ? run() : calls.timed(`worker ${job.name}`, run);
  }

  private async runHere(here: () => unknown): Promise<unknown> {
    try {
      const value = await here();
      this.counters.ended('done');
      return value;
    } catch (error) {
      this.counters.ended('failed');
      throw error;
    }
  }

  /** Loads the module's file in a worker once. */
  private async openDispatcher(): Promise<Dispatcher> {
    const { program } = this.pools;
    if (program === null || !existsSync(program)) {
      const fix = 'leave nestjs-perf and piscina out of the bundle (`external`)';
      throw offloadError(`Workers have no program: ${fix}. ${INLINE}`);
    }
    const openPool = await this.pools.load();
    const options = computePoolSize(this.options, this.allowance?.cores());
    const enabled = LEVELS.filter((level) => Logger.isLevelEnabled(level));
    const logLevels = enabled.length === 0 ? LEAST : enabled;
    const data = offloadData({ module: options.module.href, logLevels });
    const { report, nowMs } = this.application;
    const open = (size: PoolOptions) => new Dispatcher(openPool(size, data), size, this.counters, report, nowMs);
    const loading = open({ ...options, warm: 0 });
    try {
      await loading.prepare('load');
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'PERF_ERR_OFFLOAD_DOWN')
        throw explainFailedLoad(options.module, error as Error);
    } finally {
      await loading.close(0);
    }
    return open(options);
  }
}

function explainFailedLoad(module: URL, error: Error): Error {
  const advice = ` Compile it, or start the process with a loader (\`--import tsx\`). ${INLINE}`;
  const isSource = isTypeScript(findSource(module));
  return offloadError(`A worker cannot load \`module\` of offload(): ${error.message}${isSource ? advice : ''}`, error);
}

const BEFORE_BOOT =
  'workers of offload() start with the application. Call it in `onModuleInit()` or later, not in a factory.';
