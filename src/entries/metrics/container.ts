import type { ResourceSample } from '../../core/record.js';
import { single, type Metric } from './metric.js';

type ContainerMetric = Omit<Metric, 'read' | 'prometheus'> & {
  prometheus: string;
  of: (sample: ResourceSample) => number | null | undefined;
};

const metric = ({ of, prometheus, ...rest }: ContainerMetric): Metric => ({
  ...rest,
  prometheus: { name: prometheus },
  read: ({ snapshot: { resources } }) => single(resources === null ? null : of(resources)),
});

/** What the container may use and does use. Absent where the kernel does not tell. */
export const metricsOfContainer: readonly Metric[] = [
  metric({
    name: 'container.cpu.time',
    unit: 's',
    kind: 'counter',
    help: 'CPU time the container has used.',
    prometheus: 'container_cpu_time_seconds_total',
    of: ({ cpu }) => cpu.usageSeconds,
  }),
  metric({
    name: 'container.cpu.limit.utilization',
    unit: '1',
    kind: 'gauge',
    help: 'Used share of the CPU limit, else of the CPUs the process may run on.',
    prometheus: 'container_cpu_limit_utilization_ratio',
    of: ({ cpu }) => cpu.window?.utilization,
  }),
  metric({
    name: 'container.cpu.periods',
    unit: '{period}',
    kind: 'counter',
    help: 'CPU quota periods in which the container ran.',
    prometheus: 'container_cpu_periods_total',
    of: ({ cpu }) => cpu.periods,
  }),
  metric({
    name: 'container.cpu.throttled_periods',
    unit: '{period}',
    kind: 'counter',
    help: 'CPU quota periods in which the container was throttled.',
    prometheus: 'container_cpu_throttled_periods_total',
    of: ({ cpu }) => cpu.throttledPeriods,
  }),
  metric({
    name: 'container.memory.working_set',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'Memory in use that the kernel cannot take back at once.',
    prometheus: 'container_memory_working_set_bytes',
    of: ({ memory }) => memory.workingSetBytes,
  }),
  metric({
    name: 'container.memory.limit',
    unit: 'By',
    kind: 'upDownCounter',
    help: 'Memory limit of the container; absent when there is none.',
    prometheus: 'container_memory_limit_bytes',
    of: ({ limits }) => limits.memoryBytes,
  }),
];
