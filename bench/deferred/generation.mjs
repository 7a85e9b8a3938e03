// One generation: all variants of a sink in fresh processes, measured in turns at each number of connections.
import { fileURLToPath } from 'node:url';
import { drawOrder, median, startServer } from '../harness/index.mjs';
import { SINKS, cellName, usesRedis } from './cells.mjs';

const file = fileURLToPath(new URL('server.mjs', import.meta.url));
const nest11 = new URL('nest11.mjs', import.meta.url).href;
const REQUEST = { method: 'POST', path: '/orders' };
/** Connections of the warm-up: the code is the same at any number, and slow sinks warm up in bearable time. */
const WARMUP_CONNECTIONS = 100;

export const variantsOf = (sink) => ['blocking', 'blocking again', ...SINKS[sink]];

/**
 * Runs the variants of `sink` and returns `{ [cell]: { bursts: { [variant]: [burst] }, atRate } }`.
 *
 * @param rig `{ load, pinned, portOf(sink) }`
 * @param options `{ stack, node, rounds, warmup, burstMs, rateMs }`; `rateMs` 0 leaves the fixed rate out
 */
export async function runGeneration(sink, connectionCounts, rig, options) {
  const variants = variantsOf(sink);
  const servers = await startServers(sink, variants, rig.portOf(sink), options);
  try {
    const burst = (variant, connections, requests) =>
      runBurst(servers[variant], sink, variant, connections, requests, rig);
    for (const variant of variants) await burst(variant, WARMUP_CONNECTIONS, options.warmup);
    const cells = {};
    for (const connections of connectionCounts) {
      const bursts = await interleave(variants, connections, burst, options);
      const atRate = options.rateMs > 0 ? await atOneRate(servers, variants, bursts, rig, options) : null;
      cells[cellName(sink, connections)] = { bursts, atRate };
    }
    return cells;
  } finally {
    await rig.load.forget();
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
}

async function startServers(sink, variants, port, { stack, node }) {
  const started = variants.map((variant) =>
    startServer(
      {
        name: variant,
        file,
        args: [variant.replace(' again', ''), sink, stack === 'express' ? 'express' : 'fastify', String(port)],
        nodeFlags: stack === 'nest11' ? ['--import', nest11] : [],
      },
      { node },
    ),
  );
  const servers = await Promise.all(started);
  return Object.fromEntries(servers.map((server) => [server.name, server]));
}

/** Ends when every job is done; throws when a request has none. */
async function runBurst(server, sink, variant, connections, requests, { load, pinned }) {
  const before = await server.cpuUs();
  const { elapsedMs, latencyMs } = await load.burst({ port: server.port, connections, requests, request: REQUEST });
  const done = await server.ask('drain');
  const cpuUs = ((await server.cpuUs()) - before) / requests;
  const stored = usesRedis(sink) ? await pinned.countAndClear() : done;
  if (variant !== 'none' && stored !== requests) {
    throw new Error(`${variant} on ${sink}: ${requests} requests were answered, ${stored} jobs done.`);
  }
  return { cpuUs, requestsPerS: (requests * 1000) / elapsedMs, p50Ms: latencyMs.p50 };
}

/** A burst is as many requests as its variant answers in `burstMs`, so that a fast one is not over before it has begun. */
async function interleave(variants, connections, burst, { rounds, burstMs }) {
  const requests = {};
  for (const variant of variants) {
    const { requestsPerS } = await burst(variant, connections, connections * 20);
    requests[variant] = Math.max(connections * 10, Math.round((requestsPerS * burstMs) / 1000));
  }
  const bursts = Object.fromEntries(variants.map((variant) => [variant, []]));
  let order = [];
  for (let round = 0; round < rounds; round++) {
    order = drawOrder(variants, order.at(-1));
    for (const variant of order) bursts[variant].push(await burst(variant, connections, requests[variant]));
  }
  return bursts;
}

/** Latency at one rate for all, 40 % of what blocking can do. */
async function atOneRate(servers, variants, bursts, { load, pinned }, { rateMs }) {
  const ratePerS = Math.max(50, Math.round(median(bursts.blocking.map(({ requestsPerS }) => requestsPerS)) * 0.4));
  const measured = {};
  for (const variant of variants) {
    const { port } = servers[variant];
    const { latencyMs } = await load.rate({ port, connections: 200, ratePerS, durationMs: rateMs, request: REQUEST });
    await servers[variant].ask('drain');
    await pinned.countAndClear();
    measured[variant] = { ratePerS, p50Ms: latencyMs.p50, p99Ms: latencyMs.p99 };
  }
  return measured;
}
