import { guarded } from '../core/guarded.js';
import { listen, type Listener } from '../core/own-listener.js';
import { describeReason } from '../core/reason.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature } from '../request/feature.js';
import type { Exposition, WitnessMessage, WitnessOptions } from './witness.thread.js';

/** Reads the metrics of the application as its sink writes them. */
type ReadMetrics = () => Promise<Exposition>;

/** The main thread's part of `/live` and `/metrics`: the sampler's thread serves them, which a stuck event loop does not delay. */
export class Witness {
  private readMetrics: ReadMetrics | null = null;

  constructor(
    readonly options: WitnessOptions,
    /** The methods that `/live` may name: `'ReportsService.render'`. */
    readonly methods: () => ReadonlySet<string>,
    private readonly logger: Reporter,
    private readonly report: OncePerCause,
  ) {}

  /** Serves what `read` returns at `/metrics`. */
  expose(read: ReadMetrics): void {
    this.readMetrics ??= read;
  }

  /** Takes a message of the thread. Never rejects. */
  async receive(message: WitnessMessage, send: (exposition: Exposition) => void): Promise<void> {
    if ('failed' in message) return this.failed(message.failed);
    if ('listening' in message) {
      const address = formatAddress(this.options.host, message.listening);
      return this.logger.log(
        `Liveness and metrics, answered even while the event loop is stuck: GET ${address}/live and ${address}/metrics`,
      );
    }
    if (this.readMetrics === null) return;
    try {
      send(await this.readMetrics());
    } catch (error) {
      const cause = `the metrics for \`eventLoop.port\` could not be read: ${describeReason(error)}`;
      this.report.report(cause, `${cause}. The last ones are served.`);
    }
  }

  /** `comesBack`: it is tried again by itself. */
  failed(reason: string, comesBack = true): void {
    const cause = `${nameOption(this.options)} is not served: ${reason}`;
    const advice = comesBack
      ? 'It is tried again every few seconds: see that the port is free, or choose another port or host.'
      : 'It is back when the process starts again.';
    this.report.report(cause, `${cause}. Probes get no answer there. ${advice}`);
  }
}

/**
 * Answers at `eventLoop.port` while a switch keeps the event loop from being watched: probes of a manifest must not restart the pods. It runs
 * on the main thread, without a timer: an answer proves that the loop turns.
 */
export class PlainWitness implements Feature {
  private listener: Listener | null = null;
  private readMetrics: ReadMetrics | null = null;

  constructor(
    private readonly at: { readonly port: number; readonly host: string },
    private readonly application: Pick<PerfApplication, 'logger' | 'report'>,
  ) {}

  /** Serves what `read` returns at `/metrics`. */
  expose(read: ReadMetrics): void {
    this.readMetrics ??= read;
  }

  /** Never rejects: an application without its witness still serves. */
  async start(): Promise<void> {
    const { at, application, readMetrics } = this;
    const warn = (what: string): void => application.report.report(what, `${nameOption(at)} ${what}.`);
    const live = { status: 200, type: 'application/json; charset=utf-8', body: '{"beatAgeMs":0,"blocked":null}' };
    const metrics = readMetrics && (async () => ({ status: 200, ...(await readMetrics()) }));
    const failed = (reason: string): void => warn(`could not read the metrics: ${reason}`);
    const answers = { '/live': async () => live, ...(metrics && { '/metrics': guarded(null, metrics, failed) }) };
    try {
      this.listener = await listen(at, answers, () => warn('is taken, and is tried again every second'));
    } catch (error) {
      return warn(`is not served: ${describeReason(error)}`);
    }
    const { port } = this.listener;
    if (port !== null)
      application.logger.log(
        `The event loop is not watched: GET ${formatAddress(at.host, port)}/live is answered by the main thread, with 200 while the loop turns.`,
      );
  }

  async close(): Promise<void> {
    await this.listener?.close();
  }
}

const formatAddress = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

const nameOption = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `\`eventLoop: { port: ${port}, host: '${host}' }\``;
