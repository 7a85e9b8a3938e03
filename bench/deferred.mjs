// deferred: the twelve cells of the article "10x by an interceptor": a sink, a number of connections, who waits for it.
//
//   npm run bench -- deferred                                the published run: 15 rounds over 3 generations a cell
//   npm run bench -- deferred --cells redis-local-10,timer-5-100 --rounds 4 --generations 1
//   npm run bench -- deferred --stack express                (or nest11) instead of Nest 12 on Fastify
//
// Variants: `blocking` awaits the job in the handler; `article` adds it in an interceptor's tap(async), as the article does;
// `ours` is @DeferWork for the timers and deferrer.addJob() for Redis; `durable` and `envelope` are @DeferWork with
// bullmqStore; `none` answers and does nothing: the ceiling.
//
// What would make the numbers lie:
// - Work that is still under way when the last response has come: a burst ends, for time and CPU alike, when all of its
//   jobs are stored, and every burst checks that each answered request has its job. Requests per second count to the last
//   response, since that is what clients see.
// - Redis, the proxy and the load generator share core 1, so what loads Redis most is understated.
// - The remote Redis is the local one behind a proxy that holds every byte for 10 ms each way.
// - Closed-loop p99 at different throughputs compares nothing: `p99AtRateMs` is measured at one fixed rate for all.
// - With the timers a thousand tasks may run at a time (`defer.concurrency`), as blocking and the article's do.
import { fileURLToPath } from 'node:url';
import { startRedis } from '../scripts/redis.mjs';
import {
  environment,
  medianWithInterval,
  median,
  readFlags,
  startLoad,
  startServer,
  writeResult,
} from './harness/index.mjs';
import { startDelayProxy } from './deferred/delay-proxy.mjs';
import { pairedRatios } from './harness/interleaved.mjs';
import { PinnedRedis } from './deferred/pinned-redis.mjs';

const file = fileURLToPath(new URL('deferred/server.mjs', import.meta.url));
const hook = new URL('deferred/nest11.mjs', import.meta.url).href;
const SINKS = { 'timer-5': ['none', 'article', 'ours'], 'timer-25': ['none', 'article', 'ours'] };
SINKS['redis-local'] = SINKS['redis-remote'] = ['none', 'article', 'ours', 'durable', 'envelope'];
const CONNECTIONS = [10, 50, 100];

const flags = readFlags({
  cells: { type: 'string' },
  stack: { type: 'string', default: 'fastify' },
  'burst-per-connection': { type: 'string', default: '40' },
  'rate-seconds': { type: 'string', default: '2' },
  tries: { type: 'string', default: '4' },
  // For a look on a busy machine; a published run keeps 5 %.
  'max-control-error': { type: 'string', default: '0.05' },
  rounds: { type: 'string', default: '15' },
  generations: { type: 'string', default: '3' },
  warmup: { type: 'string', default: '3000' },
});
const perConnection = Number(flags['burst-per-connection']);

const redis = await startRedis({ own: true });
const pinned = await PinnedRedis.take(redis);
const proxy = await startDelayProxy(redis.port, 10);
const load = await startLoad();
const cells = [];
try {
  for (const sink of Object.keys(SINKS)) {
    for (const connections of CONNECTIONS) {
      const name = `${sink}-${connections}`;
      if (flags.cells !== undefined && !flags.cells.split(',').includes(name)) continue;
      cells.push(await measureCell(name, sink, connections));
    }
  }
} finally {
  await load.stop();
  proxy.stop();
  await pinned.quit();
  await redis.stop();
}
const result = {
  name: `deferred-${flags.stack}`,
  ...environment(),
  options: {
    rounds: flags.rounds,
    generations: flags.generations,
    burstPerConnection: perConnection,
    maxControlError: Number(flags['max-control-error']),
  },
  cells,
};
if (flags.write && flags.cells === undefined) writeResult(result);
console.log(table(cells));
console.log(JSON.stringify(result));

async function measureCell(name, sink, connections) {
  const variants = ['blocking', 'blocking again', ...SINKS[sink]];
  const generations = [];
  const discarded = [];
  const rates = Object.fromEntries(variants.map((variant) => [variant, []]));
  for (let attempt = 1; generations.length < flags.generations; attempt++) {
    if (attempt > flags.generations * Number(flags.tries)) break;
    const { bursts, atRate } = await runGeneration(sink, connections, variants);
    const control = median(pairedRatios(bursts, 'blocking again', 'blocking', 'cpuUs'));
    console.error(`${name} generation ${generations.length + 1}: control ${control.toFixed(3)}`);
    if (Math.abs(control - 1) > Number(flags['max-control-error'])) {
      discarded.push(control);
      continue;
    }
    generations.push(bursts);
    for (const variant of variants) rates[variant].push(atRate[variant]);
  }
  if (generations.length === 0) return { name, discardedRuns: discarded, rows: [] };
  const rows = variants.map((variant) => {
    const all = (quantity) => median(generations.flatMap((bursts) => bursts[variant].map((burst) => burst[quantity])));
    const ratio = (quantity, base) =>
      medianWithInterval(generations.map((bursts) => pairedRatios(bursts, variant, base, quantity)));
    return {
      name: variant,
      requestsPerS: Math.round(all('requestsPerS')),
      throughput: ratio('requestsPerS', 'blocking'),
      throughputToArticle: ratio('requestsPerS', 'article'),
      cpuUsPerRequest: all('cpuUs'),
      cpu: ratio('cpuUs', 'blocking'),
      cpuToArticle: ratio('cpuUs', 'article'),
      p50Ms: all('p50Ms'),
      p99AtRateMs: median(rates[variant].map(({ p99 }) => p99)),
      p50AtRateMs: median(rates[variant].map(({ p50 }) => p50)),
    };
  });
  return { name, discardedRuns: discarded, rows };
}

async function runGeneration(sink, connections, variants) {
  const servers = {};
  const port = sink === 'redis-remote' ? proxy.port : redis.port;
  const nodeFlags = flags.stack === 'nest11' ? ['--import', hook] : [];
  try {
    for (const variant of variants) {
      const which = variant.replace(' again', '');
      const args = [which, sink, flags.stack === 'express' ? 'express' : 'fastify', String(port)];
      servers[variant] = await startServer({ name: variant, file, args, nodeFlags }, flags);
    }
    const request = { method: 'POST', path: '/orders' };
    const burst = async (variant, requests) => {
      const server = servers[variant];
      const before = await server.cpuUs();
      const { elapsedMs, latencyMs } = await load.burst({ port: server.port, connections, requests, request });
      const done = await server.ask('drain');
      const cpuUs = ((await server.cpuUs()) - before) / requests;
      const stored = sink.startsWith('redis') ? await pinned.countAndClear() : done;
      if (variant !== 'none' && stored !== requests) {
        throw new Error(`${variant} on ${sink}: ${requests} requests were answered, ${stored} jobs done.`);
      }
      return { cpuUs, requestsPerS: (requests * 1000) / elapsedMs, p50Ms: latencyMs.p50 };
    };
    const warmup = Math.min(flags.warmup, connections * 100);
    for (const variant of variants) await burst(variant, warmup);
    const bursts = Object.fromEntries(variants.map((variant) => [variant, []]));
    const order = [...variants];
    const rounds = Math.ceil(flags.rounds / flags.generations);
    for (let round = 0; round < rounds; round++) {
      for (const variant of order) bursts[variant].push(await burst(variant, connections * perConnection));
      order.reverse();
    }
    const ratePerS = Math.max(50, Math.round(median(bursts.blocking.map(({ requestsPerS }) => requestsPerS)) * 0.4));
    const atRate = {};
    for (const variant of variants) {
      const durationMs = Number(flags['rate-seconds']) * 1000;
      const measured = await load.rate({
        port: servers[variant].port,
        connections: 200,
        ratePerS,
        durationMs,
        request,
      });
      await servers[variant].ask('drain');
      await pinned.countAndClear();
      atRate[variant] = measured.latencyMs;
    }
    await load.forget();
    return { bursts, atRate };
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
}

function table(cells) {
  const shown = ({ median, low, high }) => `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
  const lines = cells.flatMap(({ name, rows, discardedRuns }) =>
    rows.map((row) =>
      [
        name,
        row.name,
        row.requestsPerS,
        shown(row.throughput),
        shown(row.throughputToArticle),
        row.cpuUsPerRequest.toFixed(0),
        shown(row.cpu),
        shown(row.cpuToArticle),
        row.p50AtRateMs.toFixed(1),
        row.p99AtRateMs.toFixed(1),
        discardedRuns.length,
      ].join(' | '),
    ),
  );
  const head =
    'cell | variant | req/s | × blocking (95 %) | × article | CPU µs | CPU × blocking | CPU × article | p50 at rate | p99 at rate | discarded';
  return [head, head.replaceAll(/[^|]+/g, '---'), ...lines].map((line) => `| ${line} |`).join('\n');
}
