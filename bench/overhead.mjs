// overhead: CPU per request, p50 and p99 of this library and its alternatives, against bare Nest.
//
//   npm run bench -- overhead                        the published run, on Fastify
//   npm run bench -- overhead --adapter express
//   npm run bench -- overhead --adapter peers        an interceptor, nestjs-pino, prom-client and OpenTelemetry, on Fastify
//   npm run bench -- overhead --rounds 12 --generations 2 --only tap,latency
//   npm run bench -- overhead --node 24              servers on Node 24 (or the path of a Node binary)
//
// Sources of error, and how each is excluded:
// - Requests per second on a busy machine. Trust CPU per request; a generation whose control is off by > 5 % is discarded.
// - One process a variant: code layout and inlining differ by a few percent from process to process, so the interval
//   draws process generations, not only rounds.
// - Latency under full load compares queues: p50 and p99 are those of requests that come at one rate for all.
// - Short bursts: a server that was idle starts ticking and wakes its sampler, about a millisecond each time.
// - Collections of an idle server, which also throw its optimised code away, are off (`--no-memory-reducer`) for all alike.
// - Servers of a run share a core's caches, and whoever has more code finds them colder: at most six at a time.
// - A handler that does nothing makes every cost look large: real handlers wait for a database. The µs are the cost.
// - nestjs-pino writes to /dev/null and OpenTelemetry exports to nowhere: both cost more in production.
// - OpenTelemetry's Nest instrumentation does not support Nest 12, so it is the http one alone: a lower bound.
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import { benchmark, readNodeMajor, readFlags } from './harness/index.mjs';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const nest = (name, ...args) => ({ name, file: file('overhead/nest.mjs'), args });

const TABLES = {
  fastify: [
    nest('bare Nest + Fastify', 'fastify', 'bare'),
    nest('bare Nest + Fastify again', 'fastify', 'bare'),
    { name: 'bare Fastify', file: file('overhead/fastify.mjs') },
    nest('nestjs-perf: latency only', 'fastify', 'latency'),
    nest('nestjs-perf: latency, every record to a sink', 'fastify', 'records'),
    nest('nestjs-perf: all defaults', 'fastify', 'default'),
  ],
  peers: [
    nest('bare Nest + Fastify', 'fastify', 'bare'),
    nest('bare Nest + Fastify again', 'fastify', 'bare'),
    { name: 'tap interceptor', file: file('overhead/tap-interceptor.mjs') },
    { name: 'prom-client interceptor', file: file('overhead/prom-client-interceptor.mjs') },
    { name: 'nestjs-pino', file: file('peers/nestjs-pino.mjs') },
    { name: 'OpenTelemetry http', file: file('peers/opentelemetry-http.mjs') },
  ],
  express: [
    nest('bare Nest + Express', 'express', 'bare'),
    nest('bare Nest + Express again', 'express', 'bare'),
    nest('nestjs-perf: latency only', 'express', 'latency'),
    nest('nestjs-perf: all defaults', 'express', 'default'),
  ],
};

const flags = readFlags({ adapter: { type: 'string', default: 'fastify' } });
const { adapter } = flags;
if (!Object.hasOwn(TABLES, adapter)) {
  throw new Error(`--adapter must be one of ${Object.keys(TABLES).join(', ')}; got \`${adapter}\`.`);
}
if (adapter === 'peers') installLocked('bench/peers');
const name = `${adapter === 'fastify' ? 'overhead' : adapter}-node${readNodeMajor(flags.node)}`;
await benchmark(name, TABLES[adapter], flags, { request: { path: '/users/42' }, atOneRate: true });
