import type { PerfSnapshot } from '../../core/snapshot.js';
import type { BlockTotals } from './block-totals.js';

/** One value of a metric, told apart from its others by attributes (OpenTelemetry names). */
export interface Point {
  value: number;
  attributes: Readonly<Record<string, string>>;
}

/** What metrics are read from. */
export interface Measured {
  snapshot: PerfSnapshot;
  blocks: BlockTotals;
}

/** One metric in both vocabularies. */
export interface Metric {
  /** OpenTelemetry's name: a semantic convention where there is one. */
  name: string;
  /** UCUM, as OpenTelemetry wants it. */
  unit: string;
  /** `counter` only grows; `upDownCounter` can be added up over processes, a `gauge` cannot. */
  kind: 'counter' | 'upDownCounter' | 'gauge';
  help: string;
  prometheus: {
    name: string;
    /** Where several OpenTelemetry metrics are one Prometheus metric: what tells this one apart. */
    labels?: Readonly<Record<string, string>>;
  };
  /** No point where the value is not known. */
  read(now: Measured): readonly Point[];
}

const NO_ATTRIBUTES = Object.freeze({});

/** The only point of a metric; none when the value is not known. */
export const single = (value: number | null | undefined): readonly Point[] =>
  value === null || value === undefined ? [] : [{ value, attributes: NO_ATTRIBUTES }];
