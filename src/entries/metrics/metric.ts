import type { PerfSnapshot } from '../../core/snapshot.js';
import type { BlockTotals } from './block-totals.js';
import type { SeriesCap } from './series-cap.js';

/** One value of a metric, with its attributes (OpenTelemetry names). */
export interface Point {
  value: number;
  attributes: Readonly<Record<string, string>>;
}

export interface Measured {
  snapshot: PerfSnapshot;
  blocks: BlockTotals;
  cap: SeriesCap;
}

export interface Reading {
  /** Attributes of its points. */
  attributes: readonly string[];
  /** No point where the value is not known. */
  read(now: Measured): readonly Point[];
}

export interface Metric extends Reading {
  /** OpenTelemetry's name: a semantic convention where there is one. */
  name: string;
  /** UCUM, as OpenTelemetry wants it. */
  unit: string;
  /** `counter` only grows; `upDownCounter` can be added up over processes, a `gauge` cannot. */
  kind: 'counter' | 'upDownCounter' | 'gauge';
  help: string;
  prometheus: {
    name: string;
    /** Labels of this metric where several OpenTelemetry metrics are one Prometheus metric. */
    labels?: Readonly<Record<string, string>>;
    /** The name that Prometheus's client libraries share: a registry may have it already, with the same figure. */
    standard?: true;
  };
}

/** OpenTelemetry's rule for names in Prometheus ("Prometheus and OpenMetrics Compatibility"), for the units used here. */
function prometheusName(name: string, unit: string, kind: Metric['kind']): string {
  const suffix = { s: '_seconds', By: '_bytes', '1': kind === 'gauge' ? '_ratio' : '' }[unit] ?? '';
  return `${name.replaceAll('.', '_')}${suffix}${kind === 'counter' ? '_total' : ''}`;
}

type Head = Pick<Metric, 'name' | 'unit' | 'kind' | 'prometheus'>;

/** `own`: its name in Prometheus, where that differs from the rule. */
const named =
  (kind: Metric['kind']) =>
  (name: string, unit: string, own: Partial<Metric['prometheus']> = {}): Head => ({
    name,
    unit,
    kind,
    prometheus: { name: prometheusName(name, unit, kind), ...own },
  });
export const counter = named('counter');
export const gauge = named('gauge');
export const upDownCounter = named('upDownCounter');

export type Row = readonly [head: Head, help: string, reading: Reading];
export const buildMetric = ([head, help, reading]: Row): Metric => ({ ...head, help, ...reading });
