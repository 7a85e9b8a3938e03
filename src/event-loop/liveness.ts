import { describeReason } from '../core/reason.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature } from '../request/feature.js';
import {
  serveLiveness,
  type Exposition,
  type Live,
  type LivenessMessage,
  type LivenessOptions,
  type LivenessServer,
} from './liveness.thread.js';

/** Reads the metrics of the application as its sink writes them. */
type ReadMetrics = () => Promise<Exposition>;

/** The main thread's side of `eventLoop.port`: the sampler's thread serves `/live` and `/metrics` there, even while the loop is stuck. */
export class Liveness {
  protected readonly title: string = 'Liveness and metrics, answered even while the event loop is stuck';
  private readMetrics: ReadMetrics | null = null;

  constructor(
    readonly options: LivenessOptions,
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
  async receive(message: LivenessMessage, send: (exposition: Exposition) => void): Promise<void> {
    if ('failed' in message) return this.failed(message.failed);
    if ('listening' in message) {
      const address = formatAddress(this.options.host, message.listening);
      return this.logger.log(`${this.title}: GET ${address}/live and ${address}/metrics`);
    }
    if (this.readMetrics === null) return;
    try {
      send(await this.readMetrics());
    } catch (error) {
      const cause = `the metrics for \`eventLoop.port\` could not be read: ${describeReason(error)}`;
      this.report.report(cause, `${cause}. The last ones are served.`);
    }
  }

  failed(reason: string): void {
    const cause = `${nameOption(this.options)} is not served: ${reason}`;
    const advice = 'It is tried again every few seconds: see that the port is free, or choose another port or host.';
    this.report.report(cause, `${cause}. Probes get no answer there. ${advice}`);
  }
}

/** Serves on the main thread while a switch has the feature off: without an answer Kubernetes would restart the pods. */
export class MainThreadLiveness extends Liveness implements Feature {
  protected override readonly title =
    'The event loop is not watched. Liveness and metrics, answered by the main thread while it turns';
  private server: LivenessServer | null = null;

  constructor(options: LivenessOptions, { logger, report }: Pick<PerfApplication, 'logger' | 'report'>) {
    super(options, () => new Set(), logger, report);
  }

  start(): void {
    // An answer proves that the loop turns.
    const turning = (): Live => ({ beatAgeMs: 0, blocked: null });
    const receive = (message: LivenessMessage): void =>
      void this.receive(message, (metrics) => this.server?.receive(metrics));
    this.server = inRootContext(() => serveLiveness(this.options, turning, receive));
  }

  close(): void {
    this.server?.close();
  }
}

const formatAddress = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

const nameOption = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `\`eventLoop: { port: ${port}, host: '${host}' }\``;
