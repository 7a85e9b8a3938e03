export type { PrometheusSinkOptions } from './prometheus/options.js';
export { prometheusSink, type PrometheusSink } from './prometheus/sink.js';
