export type Labels = Readonly<Record<string, string>>;

export interface MetricValue {
  metricName?: string;
  labels: Labels;
  /** Labels that many lines have in common, the same object in each scrape: prom-client then writes them only once. */
  sharedLabels?: Labels;
  value: number;
  exemplar?: Exemplar;
}

/** The request that represents a bucket, in the form that prom-client writes. */
export interface Exemplar {
  readonly labelSet: Labels;
  /** Seconds. */
  readonly value: number;
  /** When it ended, epoch seconds. */
  readonly timestamp: number;
}

interface MetricValues {
  name: string;
  help: string;
  type: string;
  aggregator: string;
  values: MetricValue[];
}

/** A metric whose values are read when it is scraped: prom-client's own cannot be given what was counted elsewhere. */
export class ScrapedMetric {
  constructor(
    /** Writable, because prom-client takes `_total` off when it writes OpenMetrics. */
    public name: string,
    readonly help: string,
    readonly type: 'counter' | 'gauge' | 'histogram',
    /** How cluster mode merges the processes of one container. */
    readonly aggregator: 'sum' | 'max',
    private readonly values: () => MetricValue[],
  ) {}

  async get(): Promise<MetricValues> {
    const { values, ...metric } = await this.getForPromString();
    const merged = values.map(({ sharedLabels, labels, ...value }) => ({
      ...value,
      labels: { ...labels, ...sharedLabels },
    }));
    return { ...metric, values: merged };
  }

  /** A registry calls this instead when it writes text; only there are `sharedLabels` understood. */
  async getForPromString(): Promise<MetricValues> {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: this.values() };
  }

  /** The counters are the application's, not the registry's. */
  reset(): void {}
}
