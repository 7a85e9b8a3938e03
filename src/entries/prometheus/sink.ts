import { object, optional, value } from '../../core/option.js';
import { optionalPeer } from '../../core/optional-peer.js';
import { authorizeOption, guarded, pathOption, type Authorize } from '../../core/guarded.js';
import type { PerfRecord } from '../../core/record.js';
import type { PerfSink, PerfSinkHost } from '../../core/sink.js';
import { BlockTotals } from '../metrics/block-totals.js';
import { SeriesCap } from '../metrics/series-cap.js';
import { registerMetrics, type AnyRegistry } from './collector.js';

export interface PrometheusSinkOptions {
  /**
   * Path of the endpoint. No guard, global prefix or API document applies to it.
   * @default '/metrics'
   */
  path?: string;
  /**
   * A prom-client registry of yours, to expose its metrics and these together.
   * @default an own one for each application
   */
  registry?: AnyRegistry;
  /**
   * Who may read the endpoint; gets the request of Fastify or Express. Others are answered with 403.
   * @default everyone
   */
  authorize?: Authorize;
}

const table = object({
  path: pathOption('/metrics'),
  registry: optional(
    value<AnyRegistry>('a Registry of prom-client', (given) => {
      return typeof (given as Partial<AnyRegistry> | null)?.registerMetric === 'function';
    }),
  ),
  authorize: optional(authorizeOption),
});

/**
 * Serves the application's figures at `/metrics` for Prometheus, under OpenTelemetry's names. A scrape reads what the
 * application has counted anyway, so a request costs nothing more.
 * @throws PERF_ERR_OPTION; the application's start throws PERF_ERR_MISSING_PEER without `prom-client`
 */
export function prometheusSink(options: PrometheusSinkOptions = {}): PerfSink {
  const { path, registry, authorize } = table.read(options, 'prometheusSink');
  return new PrometheusSink(path, registry, authorize);
}

class PrometheusSink implements PerfSink {
  readonly name = 'prometheus';
  private readonly series = boundedSeries();
  private unregister: (() => void) | null = null;

  constructor(
    private readonly path: string,
    private readonly given: AnyRegistry | null,
    private readonly authorize: Authorize | null,
  ) {}

  async start(host: PerfSinkHost): Promise<void> {
    const registry = this.given ?? (await ownRegistry());
    this.unregister = registerMetrics(registry, host, this.series);
    const answer = async () => ({ status: 200, type: registry.contentType, body: await registry.metrics() });
    const failed = (reason: string): void => {
      const cause = `the Prometheus endpoint failed: ${reason}`;
      host.report?.(cause, `${cause}. Its caller was answered with 500.`);
    };
    host.get(this.path, guarded(this.authorize, answer, failed));
  }

  publish(records: readonly PerfRecord[]): void {
    for (const record of records) if (record.kind === 'block') this.series.blocks.add(record);
  }

  async close(): Promise<void> {
    this.unregister?.();
    this.unregister = null;
  }
}

function boundedSeries(): { cap: SeriesCap; blocks: BlockTotals } {
  const cap = new SeriesCap();
  return { cap, blocks: new BlockTotals(cap) };
}

async function ownRegistry(): Promise<AnyRegistry> {
  const { Registry } = await optionalPeer('prom-client', 'prometheusSink()', () => import('prom-client'));
  return new Registry();
}
