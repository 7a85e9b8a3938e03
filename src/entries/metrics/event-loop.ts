import type { BlockTotal } from './block-totals.js';
import { single, type Measured, type Metric, type Point } from './metric.js';

const delay = (stat: 'p50' | 'p99' | 'max'): Metric => ({
  name: `nodejs.eventloop.delay.${stat}`,
  unit: 's',
  kind: 'gauge',
  help: 'How late the event loop was in the last window.',
  prometheus: { name: 'nodejs_eventloop_delay_seconds', labels: { stat } },
  read: ({ snapshot: { eventLoop } }) => single(eventLoop === null ? null : eventLoop.delayMs[stat] / 1_000),
});

const blocks = (measured: Measured, valueOf: (total: BlockTotal) => number): Point[] =>
  Array.from(measured.blocks.all(), (total) => ({
    value: valueOf(total),
    attributes: { 'http.route': total.route, cause: total.cause },
  }));

/** The event loop and who blocked it. */
export const metricsOfEventLoop: readonly Metric[] = [
  {
    name: 'nodejs.eventloop.utilization',
    unit: '1',
    kind: 'gauge',
    help: 'Share of the last window in which the event loop was busy.',
    prometheus: { name: 'nodejs_eventloop_utilization_ratio' },
    read: ({ snapshot }) => single(snapshot.eventLoop?.utilization),
  },
  delay('p50'),
  delay('p99'),
  delay('max'),
  {
    name: 'perf.eventloop.blocks',
    unit: '{block}',
    kind: 'counter',
    help: 'Event-loop blocks over the threshold, by cause and by the route proven to be the culprit.',
    attributes: ['http.route', 'cause'],
    prometheus: { name: 'perf_eventloop_blocks_total' },
    read: (measured) => blocks(measured, (total) => total.count),
  },
  {
    name: 'perf.eventloop.blocked',
    unit: 's',
    kind: 'counter',
    help: 'Time that the event loop stood still in blocks over the threshold.',
    attributes: ['http.route', 'cause'],
    prometheus: { name: 'perf_eventloop_blocked_seconds_total' },
    read: (measured) => blocks(measured, (total) => total.seconds),
  },
];
