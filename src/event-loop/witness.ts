import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import { MODE, UNITS_PER_MS, WORD } from './beat.js';
import type { Timing } from './event-loop.options.js';
import { ORIGIN_MS } from './sampler-worker.js';
import { witnessSource } from './sampler-source.js';
import type { Exposition, WitnessMessage, WitnessThreadData } from './witness.thread.js';

const HEAP_MB = 32;

export interface WitnessOptions {
  readonly port: number;
  readonly host: string;
  readonly wedgedMs: number;
}

/** Answers `/live` and `/metrics` from a thread of its own, which a stuck event loop does not delay. */
export class Witness {
  /** The sampler's thread sends each {@link LoopHolder} here. */
  readonly holderPort: MessagePort;
  /** The port that it listens on; null until it does. */
  port: number | null = null;
  private readonly holders: MessagePort;
  private worker: Worker | null = null;
  private exposition: (() => Promise<Exposition>) | null = null;

  constructor(
    private readonly options: WitnessOptions,
    private readonly words: Int32Array,
    private readonly timing: Timing,
    private readonly logger: Reporter,
    private readonly report: OncePerCause,
  ) {
    const { port1, port2 } = new MessageChannel();
    [this.holderPort, this.holders] = [port1, port2];
  }

  /** Serves what `read` returns at `/metrics`. */
  expose(read: () => Promise<Exposition>): void {
    this.exposition ??= read;
  }

  /** Starts the thread. Never throws: an application without its witness still serves. */
  start(): void {
    if (this.worker !== null) return;
    try {
      this.worker = inRootContext(() => this.startThread());
    } catch (error) {
      this.failed(reasonOf(error));
    }
  }

  async close(): Promise<void> {
    const { worker } = this;
    this.worker = null;
    this.holderPort.close();
    this.holders.close();
    await worker?.terminate();
  }

  private startThread(): Worker {
    const { words, options, timing, holders } = this;
    const { thresholdMs, idleTickMs } = timing;
    const beat = { WORD, MODE, UNITS_PER_MS } as const;
    const { host } = options;
    const data: WitnessThreadData = { ...options, words, beat, originMs: ORIGIN_MS, thresholdMs, idleTickMs, holders };
    const worker = new Worker(witnessSource(), {
      eval: true,
      name: 'nestjs-perf witness',
      workerData: data,
      transferList: [holders],
      env: {},
      execArgv: [],
      argv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    });
    worker.on('error', (error) => this.failed(reasonOf(error)));
    worker.on('message', (message: WitnessMessage) => {
      if ('wants' in message) return void this.scrape(worker);
      if ('failed' in message) return this.failed(message.failed);
      this.port = message.listening;
      const address = `http://${host.includes(':') ? `[${host}]` : host}:${message.listening}`;
      this.logger.log(
        `Liveness and metrics, answered even while the event loop is stuck: GET ${address}/live and ${address}/metrics`,
      );
    });
    // Last: a listener of `message` refs the worker again.
    worker.unref();
    return worker;
  }

  private async scrape(worker: Worker): Promise<void> {
    if (this.exposition === null) return;
    try {
      worker.postMessage(await this.exposition());
    } catch (error) {
      const cause = `the metrics for \`eventLoop.port\` could not be read: ${reasonOf(error)}`;
      this.report.report(cause, `${cause}. The last ones are served.`);
    }
  }

  private failed(reason: string): void {
    const { host, port } = this.options;
    const cause = `\`eventLoop: { port: ${port}, host: '${host}' }\` is not served: ${reason}`;
    this.report.report(cause, `${cause}. Probes get no answer there; choose a free port, or take the option away.`);
  }
}
