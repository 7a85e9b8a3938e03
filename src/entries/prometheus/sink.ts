import { guarded } from '../../core/guarded.js';
import { optionalPeer } from '../../core/optional-peer.js';
import type { PerfRecord } from '../../core/record.js';
import { RunningApplications } from '../../core/running-applications.js';
import type { PerfSink, PerfSinkHost } from '../../core/sink.js';
import { BlockTotals } from '../metrics/block-totals.js';
import { SeriesCap } from '../metrics/series-cap.js';
import { registerMetrics, type AnyRegistry } from './collector.js';
import { listen, type Listener } from './listener.js';
import { prometheusOption, type PrometheusSinkOptions, type ResolvedPrometheusOptions } from './options.js';

/** The sink that {@link prometheusSink} makes. */
export interface PrometheusSink extends PerfSink {
  /** Where it listens (option `port`) while the application runs; null otherwise. */
  readonly port: number | null;
}

/**
 * Serves the application's figures at `/metrics` for Prometheus, under OpenTelemetry's names. A scrape reads what the
 * application has counted anyway, so a request costs nothing more.
 * @throws PERF_ERR_OPTION; the application's start throws PERF_ERR_MISSING_PEER without `prom-client`
 */
export function prometheusSink(options: PrometheusSinkOptions = {}): PrometheusSink {
  return new Sink(prometheusOption.read(options, 'prometheusSink'));
}

interface Running {
  /** Null: the registry is the application's own, and goes with it. */
  readonly unregister: (() => void) | null;
  listener: Listener | null;
}

class Sink implements PrometheusSink {
  readonly name = 'prometheus';
  private readonly cap = new SeriesCap();
  private readonly blocks = new BlockTotals(this.cap);
  private readonly running = new RunningApplications<Running>();

  constructor(private readonly options: ResolvedPrometheusOptions) {}

  get port(): number | null {
    return this.running.values.at(-1)?.listener?.port ?? null;
  }

  async start(host: PerfSinkHost): Promise<void> {
    const { blocks, cap } = this;
    const { path, port, prefix, labels, buckets, authorize } = this.options;
    const registry = this.options.registry ?? (await ownRegistry());
    const unregister = registerMetrics(registry, host, { blocks, cap }, { prefix, labels, boundsSeconds: buckets });
    const application: Running = { unregister: this.options.registry === null ? null : unregister, listener: null };
    this.running.add(host, application);
    const read = async () => ({ status: 200, type: registry.contentType, body: await registry.metrics() });
    host.witness?.(read);
    const failed = (reason: string): void => {
      const cause = `the Prometheus endpoint failed: ${reason}`;
      host.report?.(cause, `${cause}. Its caller was answered with 500.`);
    };
    const answer = guarded(authorize, read, failed);
    if (port === null) return host.get(path, answer);
    try {
      application.listener = await listen(port, path, answer);
    } catch (error) {
      // A sink that did not start is not closed.
      await this.close(host);
      throw error;
    }
  }

  publish(records: readonly PerfRecord[]): void {
    for (const record of records) if (record.kind === 'block') this.blocks.add(record);
  }

  async close(host?: PerfSinkHost): Promise<void> {
    const application = this.running.take(host);
    application?.unregister?.();
    await application?.listener?.close();
  }
}

async function ownRegistry(): Promise<AnyRegistry> {
  const { Registry } = await optionalPeer('prom-client', 'prometheusSink()', () => import('prom-client'));
  return new Registry();
}
