import type { Attributes as OtelAttributes, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { METRICS } from '../metrics/catalogue.js';
import type { Attributes } from '../metrics/durations.js';
import { getOrAdd } from '../../core/get-or-add.js';
import type { Measured, Metric, Point } from '../metrics/metric.js';

/** Figures of the process, which each of its applications reports. */
const OF_PROCESS = /^(?:container|process|nodejs|v8js|perf\.eventloop)\./;

/** The observers of meters: a provider gives all applications of a process the same one. */
const observers = new WeakMap<Meter, MeterObserver>();

/**
 * Registers every metric but the histograms as an observable instrument: an export reads what the application has counted
 * anyway.
 * @returns how to take them out again
 */
export function observe(meter: Meter, measure: () => Measured): () => void {
  let observer = observers.get(meter);
  if (observer === undefined) observers.set(meter, (observer = new MeterObserver(meter)));
  return observer.add(measure);
}

/** One callback for all applications: of two that observe the same series, a meter would keep the last. */
class MeterObserver {
  private readonly observed: readonly { readonly metric: Metric; readonly instrument: Observable }[];
  private readonly measures = new Set<() => Measured>();

  constructor(private readonly meter: Meter) {
    this.observed = METRICS.map((metric) => ({ metric, instrument: createInstrument(meter, metric) }));
  }

  add(measure: () => Measured): () => void {
    const { measures, meter } = this;
    const instruments = this.observed.map(({ instrument }) => instrument);
    if (measures.size === 0) meter.addBatchObservableCallback(this.callback, instruments);
    measures.add(measure);
    return () => {
      measures.delete(measure);
      if (measures.size === 0) meter.removeBatchObservableCallback(this.callback, instruments);
    };
  }

  private readonly callback = (result: BatchObservableResult): void => {
    const all = [...this.measures].map((measure) => measure());
    for (const { metric, instrument } of this.observed) {
      for (const { value, attributes } of addedUp(metric, all))
        result.observe(instrument, value, otelAttributes(attributes));
    }
  };
}

/** Points of equal attributes are one series. */
function addedUp(metric: Metric, all: readonly Measured[]): Iterable<Point> {
  const points = new Map<string, Point>();
  for (const point of all.flatMap((now) => [...metric.read(now)])) {
    const known = getOrAdd(points, JSON.stringify(point.attributes), () => ({ ...point, value: 0 }));
    known.value = OF_PROCESS.test(metric.name) ? Math.max(known.value, point.value) : known.value + point.value;
  }
  return points.values();
}

const STATUS_OF: readonly string[] = ['http.response.status_code', 'status'];

/** As the conventions have it: no `http.route` where no route matched, no status that is a class, and `error.type` where the server failed. */
export function otelAttributes(attributes: Attributes): OtelAttributes {
  const converted: OtelAttributes = {};
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'http.route' && value === '') continue;
    const isStatus = STATUS_OF.includes(key);
    if (isStatus && (value === '5xx' || Number(value) >= 500)) converted['error.type'] = String(value);
    // A class is no status code, and a code that none of its requests had would be false.
    if (!isStatus || typeof value === 'number') converted[key] = value;
  }
  return converted;
}

function createInstrument(meter: Meter, { name, unit, help, kind }: Metric): Observable {
  const options = { unit, description: help };
  if (kind === 'counter') return meter.createObservableCounter(name, options);
  if (kind === 'upDownCounter') return meter.createObservableUpDownCounter(name, options);
  return meter.createObservableGauge(name, options);
}
