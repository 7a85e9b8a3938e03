// compression: a live 3 MB feed, one compressed answer for everybody, and unique bodies, against the alternatives.
//
//   npm run bench -- compression                                    all parts, the published run
//   npm run bench -- compression --part feed --rounds 4 --generations 1 --no-write
//   npm run bench -- compression --node 24                          with zstd
//
// Parts: `feed` (10 connections, closed loop), `visitors` (1,000 visitors, each every 15 s: 66.7 requests a second, open loop),
// `unique` (bodies that all differ, 10 KB, 100 KB and 3 MB: the worst case for a cache).
//
// What would make the numbers lie:
// - Requests per second of the fast variants are bounded by the load generator's core. Trust the CPU per request.
// - A variant's burst lasts about two seconds, so that slow ones get few requests and fast ones many; ratios are of rates.
// - Loopback has no bandwidth limit: on a real link the smaller body wins more than it does here.
// - The feed changes every 15 s, as visitors poll. A variant's bursts lie further apart than that, so each one pays for a new
//   version, of which in reality some 1,000 requests share the cost; `raw` makes its versions between its bursts.
// - `raw` compresses at the level of shared answers, ahead of every request, on the event loop, and does nothing else.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  environment,
  median,
  medianWithInterval,
  nodeMajorOf,
  readFlags,
  startLoad,
  startServer,
  writeResult,
} from './harness/index.mjs';
import { MAX_CONTROL_ERROR } from './harness/interleaved.mjs';

const file = fileURLToPath(new URL('compression/server.mjs', import.meta.url));
/** What Chrome sends. */
const request = { path: '/feed', headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } };
const THREE_MB = 3_000_000;
const BURST_MS = 2_000;
const flags = readFlags({
  part: { type: 'string', default: 'feed,visitors,unique' },
  seconds: { type: 'string', default: '15' },
  slow: { type: 'boolean', default: false },
});

const FEED = [
  'fastify @fastify/compress',
  'fastify @fastify/compress again',
  'fastify @fastify/compress gzip',
  ...(flags.slow ? ['fastify @fastify/compress br 11'] : []),
  'fastify none',
  'fastify perf',
  'fastify perf shared',
  'express compression',
  'express perf',
  'express perf shared',
  'raw',
];
const UNIQUE = [
  'fastify @fastify/compress',
  'fastify @fastify/compress again',
  'fastify perf',
  'fastify perf, compression only',
  'express compression',
  'express perf',
];
const VISITORS = ['raw', 'fastify perf shared', 'express perf shared', 'fastify perf', 'fastify @fastify/compress'];

const wanted = (name) => flags.only?.some((part) => name.includes(part)) ?? true;
const variant = (name, bytes, changes) => ({
  name,
  file,
  args: [name.replace(/ again$/, ''), String(bytes), changes],
});
const table = (rows) =>
  rows
    .map((row) =>
      Object.entries(row)
        .map(([key, value]) => `${key}=${JSON.stringify(value?.median ?? value)}`)
        .join('  '),
    )
    .join('\n');
const rounded = (number, digits = 3) => Number(number.toFixed(digits));

/** Rounds of about two seconds for each variant in turn, in fresh processes for each generation; ratios against the first one. */
async function closedLoop(all, bytes, changes, connections) {
  const names = all.filter((name, index) => index < 2 || wanted(name));
  const generations = [];
  const discarded = [];
  const rounds = Math.max(1, Math.round(flags.rounds / flags.generations));
  for (let attempt = 0; generations.length < flags.generations && attempt < flags.generations * 4; attempt++) {
    const bursts = await generation(names, bytes, changes, connections, rounds);
    const control = median(bursts[names[1]].map(({ cpuMs }, round) => cpuMs / bursts[names[0]][round].cpuMs));
    if (Math.abs(control - 1) <= MAX_CONTROL_ERROR) generations.push(bursts);
    else {
      discarded.push(rounded(control));
      // Shown, not counted: a developer on a busy machine still sees what is far outside the noise.
      console.error(table(names.map((name) => rowOf(name, names[0], [bursts]))));
    }
    console.error(
      `${bytes} B ${changes}: generation ${generations.length}/${flags.generations}, control ${control.toFixed(3)}`,
    );
  }
  if (generations.length < flags.generations)
    throw new Error(`Controls off by > 5 %: ${discarded.join(', ')}. The machine is busy.`);
  const rows = names.map((name) => rowOf(name, names[0], generations));
  return { bytes, changes, connections, rounds, discarded, rows };
}

async function generation(names, bytes, changes, connections, rounds) {
  const load = await startLoad();
  const servers = [];
  const bursts = Object.fromEntries(names.map((name) => [name, []]));
  try {
    for (const name of names) servers.push(await startServer(variant(name, bytes, changes), flags));
    const requestsOf = [];
    for (const server of servers) {
      // Warms up and tells how many requests fill a burst.
      const { requestsPerS } = await burst(load, server, connections, connections * 2);
      const warm = await burst(load, server, connections, Math.max(connections, Math.round(requestsPerS)));
      requestsOf.push(Math.max(connections, Math.round((warm.requestsPerS * BURST_MS) / 1_000)));
    }
    const order = [...servers.keys()];
    for (let round = 0; round < rounds; round++) {
      for (const index of order)
        bursts[names[index]].push(await burst(load, servers[index], connections, requestsOf[index]));
      order.reverse();
    }
    return bursts;
  } finally {
    await load.stop();
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function burst(load, server, connections, requests) {
  const before = await server.cpuUs();
  const { elapsedMs, latencyMs, bodyBytes } = await load.burst({ port: server.port, connections, requests, request });
  const cpuMs = ((await server.cpuUs()) - before) / 1_000 / requests;
  const { rss } = await server.memory();
  const requestsPerS = (requests * 1_000) / elapsedMs;
  return {
    requestsPerS,
    cpuMs,
    p50Ms: latencyMs.p50,
    p99Ms: latencyMs.p99,
    bodyBytes: bodyBytes / requests,
    rssMb: rss / 2 ** 20,
  };
}

function rowOf(name, baseName, generations) {
  const all = (quantity) => generations.flatMap((bursts) => bursts[name].map((one) => one[quantity]));
  const ratio = (quantity) => {
    const { median, low, high } = medianWithInterval(
      generations.map((bursts) => bursts[name].map((one, round) => one[quantity] / bursts[baseName][round][quantity])),
    );
    return { median: rounded(median), low: rounded(low), high: rounded(high) };
  };
  return {
    name,
    requestsPerS: rounded(median(all('requestsPerS')), 1),
    throughputRatio: ratio('requestsPerS'),
    cpuMsPerRequest: rounded(median(all('cpuMs'))),
    cpuRatio: ratio('cpuMs'),
    p50Ms: rounded(median(all('p50Ms')), 1),
    p99Ms: rounded(median(all('p99Ms')), 1),
    bodyBytes: Math.round(median(all('bodyBytes'))),
    rssMb: Math.round(Math.max(...all('rssMb'))),
  };
}

/** 66.7 requests a second come, whether the server keeps up or not. */
async function openLoop(names) {
  const rows = [];
  for (const name of names.filter(wanted)) {
    const load = await startLoad();
    const server = await startServer(variant(name, THREE_MB, 'live'), flags);
    try {
      await load.burst({ port: server.port, connections: 10, requests: 20, request });
      const before = await server.cpuUs();
      const startedMs = performance.now();
      const run = await load.rate({
        port: server.port,
        connections: 200,
        ratePerS: 1_000 / 15,
        durationMs: Number(flags.seconds) * 1_000,
        request,
      });
      const cpuShare = ((await server.cpuUs()) - before) / 1_000 / (performance.now() - startedMs);
      const { p50, p99, max } = run.latencyMs;
      const { rss } = await server.memory();
      rows.push({
        name,
        due: run.due,
        ended: run.requests,
        errors: run.errors,
        p50Ms: rounded(p50, 1),
        p99Ms: rounded(p99, 1),
        maxMs: rounded(max, 1),
        cpuCores: rounded(cpuShare),
        rssMb: Math.round(rss / 2 ** 20),
      });
    } finally {
      await load.stop();
      await server.stop();
    }
  }
  return { ratePerS: 66.7, seconds: Number(flags.seconds), rows };
}

const parts = {
  feed: async () => ({ feed: await closedLoop(FEED, THREE_MB, 'live', 10) }),
  visitors: async () => ({ visitors: await openLoop(VISITORS) }),
  unique: async () => ({
    unique: [
      await closedLoop(UNIQUE, 10_000, 'unique', 50),
      await closedLoop(UNIQUE, 100_000, 'unique', 50),
      await closedLoop(UNIQUE, THREE_MB, 'unique', 10),
    ],
  }),
};
const version = execFileSync(flags.node, ['--version'], { encoding: 'utf8' }).trim();
const name = `compression-node${nodeMajorOf(flags.node)}`;
const result = { name, ...environment(version) };
for (const part of flags.part.split(',')) Object.assign(result, await parts[part]());
for (const part of [result.feed, result.visitors, ...(result.unique ?? [])]) {
  if (part === undefined) continue;
  console.log(`\n${part.bytes === undefined ? 'visitors, open loop' : `${part.bytes} B, ${part.changes}`}`);
  console.log(table(part.rows));
}
if (flags.write && flags.only === null) writeResult(result);
