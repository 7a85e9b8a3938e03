import type { PerfSnapshot } from '../../core/snapshot.js';
import type { BlockTotals } from './block-totals.js';
import type { SeriesCap } from './series-cap.js';

/** One value of a metric, told apart from its others by attributes (OpenTelemetry names). */
export interface Point {
  value: number;
  attributes: Readonly<Record<string, string>>;
}

/** What metrics are read from. */
export interface Measured {
  snapshot: PerfSnapshot;
  blocks: BlockTotals;
  cap: SeriesCap;
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
  /** What its points have; none by default. */
  attributes?: readonly string[];
  prometheus: {
    name: string;
    /** Where several OpenTelemetry metrics are one Prometheus metric: what tells this one apart. */
    labels?: Readonly<Record<string, string>>;
    /** The name that Prometheus's client libraries share: a registry may have it already, with the same figure. */
    standard?: true;
  };
  /** No point where the value is not known. */
  read(now: Measured): readonly Point[];
}

const NO_ATTRIBUTES = Object.freeze({});

/** The only point of a metric; none when the value is not known. */
export const single = (value: number | null | undefined): readonly Point[] =>
  value === null || value === undefined ? [] : [{ value, attributes: NO_ATTRIBUTES }];

/** A point for each value of one attribute; none when nothing is known. */
export const pointsBy = (attribute: string, values: Readonly<Record<string, number>> | null): Point[] =>
  Object.entries(values ?? {}).map(([of, value]) => ({ value, attributes: { [attribute]: of } }));

/** Points with equal attributes as one, their values added up. */
export function summed(points: Iterable<Point>): Point[] {
  const sums = new Map<string, Point>();
  for (const { value, attributes } of points) {
    const key = JSON.stringify(attributes);
    sums.set(key, { value: value + (sums.get(key)?.value ?? 0), attributes });
  }
  return [...sums.values()];
}
