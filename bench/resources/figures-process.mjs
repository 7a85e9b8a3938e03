// One process of resources-figures: what Node, OpenTelemetry host-metrics and this library say where it runs, as JSON.
import { availableParallelism } from 'node:os';
import { HostMetrics } from '@opentelemetry/host-metrics';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { createResourceSampler } from '../../dist/index.js';

const reader = new PeriodicExportingMetricReader({
  exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
  exportIntervalMillis: 3_600_000,
});
const meterProvider = new MeterProvider({ readers: [reader] });
new HostMetrics({ meterProvider }).start();

const sampler = createResourceSampler();
sampler.sample();
const until = performance.now() + 1_000;
while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
const sample = sampler.sample();

const { resourceMetrics } = await reader.collect();
const points = (name) =>
  resourceMetrics.scopeMetrics
    .flatMap(({ metrics }) => metrics)
    .filter(({ descriptor }) => descriptor.name === name)
    .flatMap(({ dataPoints }) => dataPoints);
const cpus = new Set(points('system.cpu.utilization').map(({ attributes }) => attributes['system.cpu.logical_number']));

process.stdout.write(
  JSON.stringify({
    node: {
      constrainedMemory: process.constrainedMemory(),
      availableMemory: process.availableMemory(),
      availableParallelism: availableParallelism(),
    },
    hostMetrics: {
      cpus: cpus.size,
      memoryBytes: points('system.memory.usage').reduce((sum, { value }) => sum + value, 0),
      namesThrottling: resourceMetrics.scopeMetrics.some(({ metrics }) =>
        metrics.some(({ descriptor }) => descriptor.name.includes('throttl')),
      ),
    },
    ours: {
      cpuCores: sample.limits.cpuCores,
      memoryBytes: sample.limits.memoryBytes,
      availableBytes: sample.memory.availableBytes,
      utilization: sample.cpu.window.utilization,
      throttledRatio: sample.cpu.window.throttledRatio,
      throttledByHiddenAncestor: sample.cpu.window.throttledByHiddenAncestor,
    },
  }),
);
sampler.close();
process.exit();
