// deferred: twelve cells, a sink and a number of connections: who waits for the job of each request, and what it costs.
//
//   npm run bench -- deferred                                the published run: 15 rounds over 3 generations a cell
//   npm run bench -- deferred --stack express                (or nest11) instead of Nest 12 on Fastify
//   npm run bench -- deferred --cells redis-local-10,timer-5-100 --rounds 5 --generations 1
//
// Variants: `blocking` awaits the job in the handler; `article` adds it in an interceptor's tap(async), as articles propose;
// `ours` is @DeferWork for the timers and deferrer.addJob() for Redis; `durable` and `batch` (`runBatch`) are @DeferWork with
// bullmqStore; `none` answers and does nothing: the ceiling.
//
// Sources of error, and how each is excluded:
// - Work that is still under way when the last response has come: a burst ends, for its CPU time, when all of its jobs are
//   stored, and every burst checks that each answered request has its job. Requests per second count to the last response.
// - Cold code: whoever has more code looks worse, so processes are warm before their first burst.
// - Redis, the proxy and the load generator share core 1, so what loads Redis most is understated.
// - The remote Redis is the local one behind a proxy that holds every byte for 10 ms each way.
// - Latency at different throughputs compares nothing: p50 and p99 are measured at one rate for all.
// - With the timers a thousand tasks may run at a time (`defer.concurrency`), as blocking and the article's do.
import { fileURLToPath } from 'node:url';
import { startRedis } from '../scripts/redis.mjs';
import { startDelayProxy } from './deferred/delay-proxy.mjs';
import { PinnedRedis } from './deferred/pinned-redis.mjs';
import { environment, interval, readNodeVersion, pairRatio, readFlags } from './harness/index.mjs';
import { runInterleaved, summarise, writeResult } from './harness/index.mjs';

const CONNECTIONS = [10, 50, 100];
/** Beside `blocking` and its twin. */
const OF_TIMERS = ['none', 'article', 'ours'];
const OF_REDIS = [...OF_TIMERS, 'durable', 'batch'];
const SINKS = { 'timer-5': OF_TIMERS, 'timer-25': OF_TIMERS, 'redis-local': OF_REDIS, 'redis-remote': OF_REDIS };
const file = fileURLToPath(new URL('deferred/server.mjs', import.meta.url));
const nest11 = new URL('deferred/nest11.mjs', import.meta.url).href;

const flags = readFlags({
  cells: { type: 'string' },
  stack: { type: 'string', default: 'fastify' },
  rounds: { type: 'string', default: '15' },
  generations: { type: 'string', default: '3' },
  warmup: { type: 'string', default: '10000' },
});
const { stack, rounds, generations, warmup } = flags;
const wanted = (cell) => flags.cells?.split(',').includes(cell) ?? true;
const where = environment(readNodeVersion(flags.node));
const redis = await startRedis({ own: true });
const pinned = await PinnedRedis.take(redis);
const proxy = await startDelayProxy(redis.port, 10);
const [rows, discardedRuns] = [[], {}];
try {
  for (const sink of Object.keys(SINKS)) {
    for (const connections of CONNECTIONS) {
      if (wanted(`${sink}-${connections}`)) await measureCell(sink, connections);
    }
  }
} finally {
  proxy.stop();
  await pinned.quit();
  await redis.stop();
}
const name = stack === 'fastify' ? 'deferred' : `deferred-${stack}`;
if (flags.write && flags.cells === undefined) {
  writeResult({ name, ...where, options: { rounds, generations, warmup }, discardedRuns, rows });
}
printTable();

async function measureCell(sink, connections) {
  const port = sink === 'redis-remote' ? proxy.port : redis.port;
  const adapter = stack === 'express' ? 'express' : 'fastify';
  const variants = ['blocking', 'blocking again', ...SINKS[sink]].map((name) => ({
    name,
    file,
    args: [name.replace(' again', ''), sink, adapter, String(port)],
    nodeFlags: stack === 'nest11' ? ['--import', nest11] : [],
  }));
  console.error(`${sink}-${connections}`);
  const run = await runInterleaved(
    variants,
    { ...flags, connections },
    {
      request: { method: 'POST', path: '/orders' },
      burstMs: 300,
      warmupMs: 5_000,
      warmupConnections: 100,
      atOneRate: true,
      settle: (server, requests) => allDone(server, requests, sink),
    },
  );
  const cell = `${sink}-${connections}`;
  const summary = summarise(variants, flags, run);
  discardedRuns[cell] = summary.discardedRuns;
  for (const row of summary.rows) rows.push({ cell, ...row, ...besideArticle(run, row) });
}

/** Every job is done; throws when a request has none. */
async function allDone(server, requests, sink) {
  const done = await server.ask('drain');
  const stored = sink.startsWith('redis') ? await pinned.countAndClear() : done;
  if (server.name === 'none' || stored === requests) return;
  throw new Error(`${server.name} on ${sink}: ${requests} requests were answered, ${stored} jobs done.`);
}

function besideArticle({ generations }, { name }) {
  const ratio = (quantity) => pairRatio(generations, name, 'article', quantity);
  return { cpuRatioToArticle: ratio('cpuUs'), throughputRatioToArticle: ratio('requestsPerS') };
}

function printTable() {
  console.log(
    '| cell | variant | req/s | × blocking | × article | CPU µs | CPU × blocking | CPU × article | p50, p99 ms |',
  );
  console.log('|---'.repeat(9).concat('|'));
  for (const row of rows) {
    const throughput = [row.requestsPerS, interval(row.throughputRatio), interval(row.throughputRatioToArticle)];
    const cpu = [row.cpuUsPerRequest, interval(row.cpuRatio), interval(row.cpuRatioToArticle)];
    console.log(`| ${[row.cell, row.name, ...throughput, ...cpu, `${row.p50Ms}, ${row.p99Ms}`].join(' | ')} |`);
  }
}
