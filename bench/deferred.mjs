// deferred: the twelve cells of the article "10x by an interceptor": a sink, a number of connections, who waits for it.
//
//   npm run bench -- deferred                                the published run: 15 rounds over 3 generations a cell
//   npm run bench -- deferred --stack express                (or nest11) instead of Nest 12 on Fastify
//   npm run bench -- deferred --cells redis-local-10,timer-5-100 --rounds 5 --generations 1
//
// Variants: `blocking` awaits the job in the handler; `article` adds it in an interceptor's tap(async), as the article does;
// `ours` is @DeferWork for the timers and deferrer.addJob() for Redis; `durable` and `envelope` are @DeferWork with
// bullmqStore; `none` answers and does nothing: the ceiling.
//
// A cell is a win when `ours` is faster than both others with its whole interval, a draw when it meets every bound of
// deferred/cells.mjs with the better end of its interval, else a miss.
//
// What would make the numbers lie:
// - Work that is still under way when the last response has come: a burst ends, for time and CPU alike, when all of its
//   jobs are stored, and every burst checks that each answered request has its job. Requests per second count to the last
//   response, since that is what clients see.
// - Cold code: a process answers `--warmup` requests before its first burst. After 1,000 requests a request still costs
//   four times what it costs after 15,000, and whoever has more code looks worse.
// - Redis, the proxy and the load generator share core 1, so what loads Redis most is understated.
// - The remote Redis is the local one behind a proxy that holds every byte for 10 ms each way.
// - Closed-loop p99 at different throughputs compares nothing: p99 is measured at one rate for all, once a cell.
// - With the timers a thousand tasks may run at a time (`defer.concurrency`), as blocking and the article's do.
import { startRedis } from '../scripts/redis.mjs';
import { MAX_CONTROL_ERROR, pairedRatios } from './harness/interleaved.mjs';
import { environment, median, nodeVersionOf, readFlags, startLoad, writeResult } from './harness/index.mjs';
import { CONNECTIONS, SINKS, cellName } from './deferred/cells.mjs';
import { startDelayProxy } from './deferred/delay-proxy.mjs';
import { runGeneration, variantsOf } from './deferred/generation.mjs';
import { PinnedRedis } from './deferred/pinned-redis.mjs';
import { markdown, summariseCell } from './deferred/summary.mjs';

const flags = readFlags({
  cells: { type: 'string' },
  stack: { type: 'string', default: 'fastify' },
  'burst-ms': { type: 'string', default: '150' },
  'rate-ms': { type: 'string', default: '700' },
  /** So many runs a sink for each generation that is wanted. */
  tries: { type: 'string', default: '2' },
  // For a look on a busy machine; a published run keeps 5 %.
  'max-control-error': { type: 'string', default: String(MAX_CONTROL_ERROR) },
  rounds: { type: 'string', default: '15' },
  generations: { type: 'string', default: '3' },
  warmup: { type: 'string', default: '10000' },
});
const maxControlError = Number(flags['max-control-error']);
const wanted = flags.cells?.split(',') ?? null;
const where = environment(nodeVersionOf(flags.node));

const redis = await startRedis({ own: true });
const pinned = await PinnedRedis.take(redis);
const proxy = await startDelayProxy(redis.port, 10);
const load = await startLoad();
const rig = { load, pinned, portOf: (sink) => (sink === 'redis-remote' ? proxy.port : redis.port) };
const cells = [];
try {
  for (const sink of Object.keys(SINKS)) cells.push(...(await measureSink(sink)));
} finally {
  await load.stop();
  proxy.stop();
  await pinned.quit();
  await redis.stop();
}
const { stack, rounds, generations, warmup } = flags;
const result = {
  name: stack === 'fastify' ? 'deferred' : `deferred-${stack}`,
  ...where,
  options: { rounds, generations, warmup, burstMs: Number(flags['burst-ms']), maxControlError },
  cells,
};
if (flags.write && wanted === null) writeResult(result);
console.log(markdown(cells));

async function measureSink(sink) {
  const counts = CONNECTIONS.filter((count) => wanted === null || wanted.includes(cellName(sink, count)));
  if (counts.length === 0) return [];
  const kept = new Map(counts.map((count) => [count, []]));
  const discarded = new Map(counts.map((count) => [count, []]));
  for (let run = 1; run <= flags.generations * Number(flags.tries); run++) {
    const missing = counts.filter((count) => kept.get(count).length < flags.generations);
    if (missing.length === 0) break;
    const measured = await runGeneration(sink, missing, rig, {
      stack: flags.stack,
      node: flags.node,
      rounds: Math.ceil(flags.rounds / flags.generations),
      warmup: flags.warmup,
      burstMs: Number(flags['burst-ms']),
      rateMs: missing.some((count) => kept.get(count).length === 0) ? Number(flags['rate-ms']) : 0,
    });
    for (const count of missing) {
      const cell = measured[cellName(sink, count)];
      const control = median(pairedRatios(cell.bursts, 'blocking again', 'blocking', 'cpuUs'));
      const keep = Math.abs(control - 1) <= maxControlError;
      if (keep) kept.get(count).push(cell);
      else discarded.get(count).push(Number(control.toFixed(4)));
      console.error(`${cellName(sink, count)} run ${run}: control ${control.toFixed(3)}${keep ? '' : ', discarded'}`);
    }
  }
  return counts.map((count) => summariseCell(sink, count, variantsOf(sink), kept.get(count), discarded.get(count)));
}
