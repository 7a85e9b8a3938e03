// The sinks that are compared, by name.
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { loggerSink } from 'nestjs-perf';
import { openTelemetrySink } from 'nestjs-perf/opentelemetry';
import { prometheusSink } from 'nestjs-perf/prometheus';
import { statsigSink } from 'nestjs-perf/statsig';
import { Registry } from 'prom-client';
import { StatsigServer } from 'statsig-node';

const EVERY_MS = 1_000;

const statsig = (options) => {
  const client = new StatsigServer('secret-bench', { api: process.env.STATSIG_API, initStrategyForIP3Country: 'none' });
  return statsigSink({ client, ...options });
};

const SINKS = {
  nothing: () => ({ name: 'nothing', publish() {} }),
  logger: () => loggerSink(),
  prometheus() {
    const registry = new Registry();
    setInterval(() => void registry.metrics(), EVERY_MS);
    return prometheusSink({ registry });
  },
  opentelemetry() {
    const exporter = {
      export: (_metrics, done) => done({ code: 0 }),
      forceFlush: async () => {},
      shutdown: async () => {},
    };
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: EVERY_MS,
      exportTimeoutMillis: EVERY_MS,
    });
    return openTelemetrySink({ meterProvider: new MeterProvider({ readers: [reader] }) });
  },
  'statsig-each': () => statsig({ requests: 'each' }),
  'statsig-tenth': () => statsig({ requests: 'each', sampleRate: 0.1 }),
  'statsig-rollup': () => statsig({ requests: 'rollup' }),
};

export const sinkNamed = (name) => SINKS[name]();
