// overhead: CPU per request of this library and its alternatives, against bare Nest + Fastify.
//
//   npm run bench -- overhead                          the published run
//   npm run bench -- overhead --rounds 12 --generations 2 --only tap,latency
//   npm run bench -- overhead --node 24              servers on Node 24 (or the path of a Node binary)
//
// What would make the numbers lie:
// - Requests per second on a busy machine. Trust CPU per request; a generation whose control is off by > 5 % is discarded.
// - One process a variant: code layout and inlining differ by a few percent from process to process, so the interval
//   draws process generations, not only rounds.
// - Short bursts: a server that was idle starts ticking and wakes its watchdog, about a millisecond each time. A server in service
//   does that seldom, so bursts are long here.
// - A handler that does nothing makes every cost look large: real handlers wait for a database. The µs are the cost.
// - nestjs-pino writes to /dev/null and OpenTelemetry exports to nowhere: both cost more in production.
// - OpenTelemetry's Nest instrumentation does not support Nest 12, so it is the http one alone: a lower bound.
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import { benchmark, nodeMajorOf, readFlags } from './harness/index.mjs';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const nest = file('overhead/nest.mjs');
const perf = file('overhead/perf.mjs');

const variants = [
  { name: 'bare Nest + Fastify', file: nest },
  { name: 'bare Nest + Fastify again', file: nest },
  { name: 'bare Fastify', file: file('overhead/fastify.mjs') },
  { name: 'nestjs-perf: latency only', file: perf, args: ['latency'] },
  { name: 'nestjs-perf: latency, every record to a sink', file: perf, args: ['records'] },
  { name: 'nestjs-perf: all defaults', file: perf, args: ['default'] },
  { name: 'tap interceptor', file: file('overhead/tap-interceptor.mjs') },
  { name: 'prom-client interceptor', file: file('overhead/prom-client-interceptor.mjs') },
  { name: 'nestjs-pino', file: file('peers/nestjs-pino.mjs') },
  { name: 'OpenTelemetry http', file: file('peers/opentelemetry.mjs') },
];

const flags = readFlags();
installLocked('bench/peers');
await benchmark(`overhead-node${nodeMajorOf(flags.node)}`, variants, flags, { request: { path: '/users/42' } });
