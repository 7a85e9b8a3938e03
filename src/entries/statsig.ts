export { statsigSink, type StatsigSinkOptions } from './statsig/sink.js';
export type { StatsigClient } from './statsig/client.js';
