export { statsigGates, type StatsigGateClient, type StatsigGatesOptions } from './statsig/gates.js';
export { statsigSink, type StatsigSinkOptions } from './statsig/sink.js';
export type { StatsigClient } from './statsig/client.js';
