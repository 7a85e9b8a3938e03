import { metricsOfContainer } from './container.js';
import type { Metric } from './metric.js';
import { metricsOfRuntime } from './runtime.js';
import { metricsOfWork } from './work.js';

/** Every metric but the request histogram. The order is that of the exposition. */
export const METRICS: readonly Metric[] = [...metricsOfRuntime, ...metricsOfContainer, ...metricsOfWork];
