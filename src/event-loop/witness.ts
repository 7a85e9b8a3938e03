import { describeReason } from '../core/reason.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import type { Exposition, WitnessMessage, WitnessOptions } from './witness.thread.js';

/** The main thread's part of `/live` and `/metrics`: the sampler's thread serves them, which a stuck event loop does not delay. */
export class Witness {
  private exposition: (() => Promise<Exposition>) | null = null;

  constructor(
    readonly options: WitnessOptions,
    /** The methods that `/live` may name: `'ReportsService.render'`. */
    readonly methods: () => ReadonlySet<string>,
    private readonly logger: Reporter,
    private readonly report: OncePerCause,
  ) {}

  /** Serves what `read` returns at `/metrics`. */
  expose(read: () => Promise<Exposition>): void {
    this.exposition ??= read;
  }

  /** Takes a message of the thread. Never rejects. */
  async receive(message: WitnessMessage, send: (exposition: Exposition) => void): Promise<void> {
    if ('failed' in message) return this.failed(message.failed);
    if ('listening' in message) {
      const { host } = this.options;
      const address = `http://${host.includes(':') ? `[${host}]` : host}:${message.listening}`;
      return this.logger.log(
        `Liveness and metrics, answered even while the event loop is stuck: GET ${address}/live and ${address}/metrics`,
      );
    }
    if (this.exposition === null) return;
    try {
      send(await this.exposition());
    } catch (error) {
      const cause = `the metrics for \`eventLoop.port\` could not be read: ${describeReason(error)}`;
      this.report.report(cause, `${cause}. The last ones are served.`);
    }
  }

  /** `comesBack`: it is tried again by itself. */
  failed(reason: string, comesBack = true): void {
    const { host, port } = this.options;
    const cause = `\`eventLoop: { port: ${port}, host: '${host}' }\` is not served: ${reason}`;
    const advice = comesBack
      ? 'It is tried again every few seconds: see that the port is free, or choose another port or host.'
      : 'It is back when the process starts again.';
    this.report.report(cause, `${cause}. Probes get no answer there. ${advice}`);
  }
}
