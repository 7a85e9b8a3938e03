import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { METRICS } from '../metrics/catalogue.js';
import type { Measured, Metric, Point } from '../metrics/metric.js';

/**
 * Registers every metric but the request histogram as an observable instrument: an export reads what the application has
 * counted anyway.
 * @returns how to take them out again
 */
export function observe(meter: Meter, measure: () => Measured): () => void {
  const observed = METRICS.map((metric) => ({ metric, instrument: instrumentOf(meter, metric) }));
  const callback = (result: BatchObservableResult): void => {
    const now = measure();
    for (const { metric, instrument } of observed) {
      for (const { value, attributes } of metric.read(now)) {
        result.observe(instrument, value, attributes['http.route'] === '' ? withoutRoute(attributes) : attributes);
      }
    }
  };
  const instruments = observed.map(({ instrument }) => instrument);
  meter.addBatchObservableCallback(callback, instruments);
  return () => meter.removeBatchObservableCallback(callback, instruments);
}

/** The convention leaves `http.route` out where there is no route. */
const withoutRoute = (attributes: Point['attributes']): Point['attributes'] =>
  Object.fromEntries(Object.entries(attributes).filter(([key]) => key !== 'http.route'));

function instrumentOf(meter: Meter, { name, unit, help, kind }: Metric): Observable {
  const options = { unit, description: help };
  if (kind === 'counter') return meter.createObservableCounter(name, options);
  if (kind === 'upDownCounter') return meter.createObservableUpDownCounter(name, options);
  return meter.createObservableGauge(name, options);
}
