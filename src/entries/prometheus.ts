export { prometheusSink, type PrometheusSinkOptions } from './prometheus/sink.js';
