import cluster from 'node:cluster';
import { guarded } from '../../core/guarded.js';
import { optionError } from '../../core/option.js';
import { listen, type Listener } from './own-listener.js';
import { optionalPeer } from '../../core/optional-peer.js';
import type { PerfRecord, RequestRecord } from '../../core/record.js';
import { RunningApplications } from '../../core/running-applications.js';
import type { PerfSink, PerfSinkHost } from '../../core/sink.js';
import { isHttp } from '../metrics/durations.js';
import { BlockTotals } from '../metrics/block-totals.js';
import { SeriesCap } from '../metrics/series-cap.js';
import { activeSpan } from '../opentelemetry/active-span.js';
import { Exemplars } from './exemplars.js';
import { registerMetrics, type AnyRegistry, type Registration } from './collector.js';
import { prometheusOption, type PrometheusSinkOptions, type ResolvedPrometheusOptions } from './options.js';

/** The sink that {@link prometheusSink} makes. */
export interface PrometheusSink extends PerfSink {
  /** The port it listens on (option `port`) while the application runs; null otherwise, and while that port is taken. */
  readonly port: number | null;
}

/**
 * Serves the application's figures at `/metrics` for Prometheus, under OpenTelemetry's names. A scrape reads what the
 * application has counted anyway, so a request costs nothing more.
 * @throws PERF_ERR_OPTION; the application's start throws PERF_ERR_MISSING_PEER without `prom-client`
 */
export function prometheusSink(options: PrometheusSinkOptions = {}): PrometheusSink {
  const resolved = prometheusOption.read(options, 'prometheusSink');
  const { exemplars, registry } = resolved;
  if (exemplars && registry !== null && !registry.contentType.startsWith('application/openmetrics-text')) {
    const expected =
      'a registry that writes OpenMetrics, for `exemplars`: `registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)`';
    throw optionError('prometheusSink.registry', expected, registry);
  }
  return new Sink(resolved);
}

interface Running {
  readonly registration: Registration;
  listener: Listener | null;
}

class Sink implements PrometheusSink {
  readonly name = 'prometheus';
  /** Exemplars are of single requests; all else is counted already. */
  readonly requests: 'all' | 'none';
  private readonly cap: SeriesCap;
  private readonly blocks: BlockTotals;
  private readonly exemplars: Exemplars | null;
  private readonly running = new RunningApplications<Running>();

  constructor(private readonly options: ResolvedPrometheusOptions) {
    const { buckets, exemplars, maxRoutes } = options;
    this.requests = exemplars ? 'all' : 'none';
    this.cap = new SeriesCap(maxRoutes);
    this.blocks = new BlockTotals(this.cap);
    this.exemplars = exemplars ? new Exemplars(buckets) : null;
  }

  get port(): number | null {
    return this.running.values.at(-1)?.listener?.port ?? null;
  }

  async start(host: PerfSinkHost): Promise<void> {
    const { blocks, cap, exemplars } = this;
    const { path, port, prefix, labels, buckets, authorize, maxRoutes, statusLabel } = this.options;
    if (exemplars !== null) {
      const api = await optionalPeer('@opentelemetry/api', EXEMPLARS, () => import('@opentelemetry/api'));
      host.activeSpan?.(() => activeSpan(api));
    }
    const registry = this.options.registry ?? (await ownRegistry(exemplars !== null));
    const byClass = statusLabel === 'class';
    const exposition = { prefix, labels, boundsSeconds: buckets, byClass, maxSeries: maxRoutes, exemplars };
    const registration = registerMetrics(registry, host, { blocks, cap }, exposition);
    const application: Running = { registration, listener: null };
    this.running.add(host, application);
    const read = async () => ({ status: 200, type: registry.contentType, body: await registry.metrics() });
    host.witness?.(read);
    const failed = (reason: string): void => {
      const cause = `the Prometheus endpoint failed: ${reason}`;
      host.report?.(cause, `${cause}. Its caller was answered with 500.`);
    };
    const answer = guarded(authorize, read, failed);
    if (port === null) {
      if (cluster.isWorker && this.options.registry === null) host.report?.('prometheus in a cluster', WORKERS_IN_TURN);
      return host.get(path, answer);
    }
    try {
      const taken = (): void => host.report?.('the port of prometheusSink() is taken', takenText(port));
      application.listener = await listen({ port }, { [path]: answer }, taken);
    } catch (error) {
      // A sink that did not start is not closed.
      await this.close(host);
      throw error;
    }
  }

  publish(records: readonly PerfRecord[]): void {
    for (const record of records) {
      if (record.kind === 'block') this.blocks.add(record);
      else if (record.kind === 'request' && record.outcome === 'completed') this.addExemplar(record);
    }
  }

  async close(host?: PerfSinkHost): Promise<void> {
    const application = this.running.take(host);
    // An own registry goes with its application.
    if (this.options.registry !== null) application?.registration.remove();
    await application?.listener?.close();
  }

  private addExemplar(record: RequestRecord): void {
    if (this.exemplars === null || !isHttp(record.method)) return;
    for (const { registration } of this.running.values) this.exemplars.add(registration.index.of(record), record);
  }
}

const EXEMPLARS = 'prometheusSink({ exemplars: true })';

const WORKERS_IN_TURN =
  'prometheusSink() runs in a worker of a cluster: workers answer scrapes in turn, and counters seem to go back. Give each worker a ' +
  "`port` of its own, or a `registry` that prom-client's `AggregatorRegistry` adds up.";

const takenText = (port: number): string =>
  `Port ${port} of prometheusSink() is taken: ` +
  (cluster.isWorker
    ? 'another worker of this cluster may have it. Give each worker a `port` of its own.'
    : 'the process before may still be closing.') +
  ' It is tried again every second; until then there are no metrics.';

async function ownRegistry(writesExemplars: boolean): Promise<AnyRegistry> {
  const { Registry } = await optionalPeer('prom-client', 'prometheusSink()', () => import('prom-client'));
  const registry = new Registry();
  // The types of prom-client 15 know one content type alone.
  if (writesExemplars) registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
  return registry;
}
