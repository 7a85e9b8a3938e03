import type { ResourceSample } from '../../core/record.js';
import { single, type Metric } from './metric.js';

type ResourceMetric = Omit<Metric, 'read'> & { of: (sample: ResourceSample) => number | null | undefined };

const metric = ({ of, ...rest }: ResourceMetric): Metric => ({
  ...rest,
  read: ({ snapshot: { resources } }) => single(resources === null ? null : of(resources)),
});

/** What the container may use and does use. Absent where the kernel does not tell. */
export const metricsOfContainer: readonly Metric[] = [
  metric({
    name: 'container.cpu.time',
    unit: 's',
    kind: 'counter',
    help: 'CPU time the container has used.',
    prometheus: { name: 'container_cpu_time_seconds_total' },
    of: ({ cpu }) => cpu.usageSeconds,
  }),
  metric({
    name: 'container.cpu.limit.utilization',
    unit: '1',
    kind: 'gauge',
    help: 'Used share of the CPU limit, else of the CPUs the process may run on.',
    prometheus: { name: 'container_cpu_limit_utilization_ratio' },
    of: ({ cpu }) => cpu.window?.utilization,
  }),
  metric({
    name: 'container.cpu.periods',
    unit: '{period}',
    kind: 'counter',
    help: 'CPU quota periods in which the container ran.',
    prometheus: { name: 'container_cpu_periods_total' },
    of: ({ cpu }) => cpu.periods,
  }),
  metric({
    name: 'container.cpu.throttled_periods',
    unit: '{period}',
    kind: 'counter',
    help: 'CPU quota periods in which the container was throttled.',
    prometheus: { name: 'container_cpu_throttled_periods_total' },
    of: ({ cpu }) => cpu.throttledPeriods,
  }),
  metric({
    name: 'container.memory.working_set',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'Memory in use that the kernel cannot take back at once.',
    prometheus: { name: 'container_memory_working_set_bytes' },
    of: ({ memory }) => memory.workingSetBytes,
  }),
  metric({
    name: 'container.memory.limit',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'Memory limit of the container; absent when there is none.',
    prometheus: { name: 'container_memory_limit_bytes' },
    of: ({ limits }) => limits.memoryBytes,
  }),
];

/** The process itself, by the names that dashboards for Node.js look for. Known wherever resources are on. */
export const metricsOfProcess: readonly Metric[] = [
  metric({
    name: 'process.cpu.time',
    unit: 's',
    kind: 'counter',
    help: 'CPU time the process has used.',
    prometheus: { name: 'process_cpu_seconds_total', standard: true },
    of: ({ process }) => process.cpuSeconds,
  }),
  metric({
    name: 'process.memory.usage',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'Resident memory of the process.',
    prometheus: { name: 'process_resident_memory_bytes', standard: true },
    of: ({ process }) => process.rssBytes,
  }),
  metric({
    name: 'nodejs.heap.size.used',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'JavaScript heap in use.',
    prometheus: { name: 'nodejs_heap_size_used_bytes', standard: true },
    of: ({ process }) => process.heapUsedBytes,
  }),
  metric({
    name: 'nodejs.heap.size.limit',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'Size of the JavaScript heap at which the process ends.',
    prometheus: { name: 'nodejs_heap_size_limit_bytes', standard: true },
    of: ({ process }) => process.heapLimitBytes,
  }),
];
