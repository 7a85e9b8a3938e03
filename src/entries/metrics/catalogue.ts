import { metricsOfCache } from './cache.js';
import { metricsOfEventLoop } from './event-loop.js';
import { metricsOfGuard } from './guard.js';
import type { Metric } from './metric.js';
import { metricsOfRequests } from './requests.js';
import { metricsOfContainer, metricsOfProcess } from './resources.js';
import { metricsOfUpstreams } from './upstreams.js';
import { metricsOfWork } from './work.js';

/** Every metric but the histograms of durations. The order is that of the exposition. */
export const METRICS: readonly Metric[] = [
  ...metricsOfRequests,
  ...metricsOfEventLoop,
  ...metricsOfContainer,
  ...metricsOfProcess,
  ...metricsOfWork,
  ...metricsOfUpstreams,
  ...metricsOfGuard,
  ...metricsOfCache,
];
