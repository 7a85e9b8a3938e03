// compression: a live 3 MB feed, one compressed answer for everybody, and unique bodies, against the alternatives.
//
//   npm run bench -- compression                                    all parts, the published run: some 13 minutes
//   npm run bench -- compression --part feed --rounds 6 --generations 1 --no-write
//   npm run bench -- compression --node 24                          with zstd
//
// Parts, each with a result file of its own: `feed` (10 connections, closed loop), `shared` (the same, against precompressed
// bytes), `visitors` (1,000 visitors, each every 15 s: 66.7 requests a second, open loop), `unique10k`, `unique100k` and
// `unique3m`, or `unique` for the three (bodies that all differ: the worst case for a cache), `slow` (one connection, few rounds: the rows that
// take seconds, brotli at its maximum among them).
//
// What would make the numbers lie:
// - Requests per second of the fast variants are bounded by the load generator's core. Trust the CPU per request.
// - A variant's burst lasts half a second, or one request on every connection; ratios are of rates, paired by round.
// - Loopback has no bandwidth limit: on a real link the smaller body wins more than it does here.
// - The feed changes every 15 s, as visitors poll. A variant's bursts lie further apart than half a second, so each pays for
//   more new versions than in reality, where some 1,000 requests share one; `raw` makes its versions between its bursts.
// - `raw` compresses at the level of shared answers, ahead of every request, on the event loop, and does nothing else.
// - Visitors: variants take turns of 20 s, each with one change of the feed and one refresh in it; while one has its turn
//   the feeds of the others rest. Quantiles are those of all turns together, the ratio that of the turns in pairs.
import { fileURLToPath } from 'node:url';
import {
  drawOrder,
  environment,
  median,
  medianWithInterval,
  nodeMajorOf,
  nodeVersionOf,
  percentile,
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
const BURST_MS = 500;
const WARM_UP_MS = 2_000;
/** Longer than the feed's 15 s, so that each turn has its refresh. */
const TURN_MS = 20_000;
const flags = readFlags({
  part: { type: 'string', default: 'feed,shared,visitors,unique,slow' },
  generations: { type: 'string', default: '3' },
  turns: { type: 'string', default: '4' },
});

const FEED = [
  'fastify @fastify/compress',
  'fastify @fastify/compress again',
  'fastify none',
  'fastify perf',
  'fastify perf shared',
  'express perf',
  'express perf shared',
];
const SHARED = ['raw', 'raw again', 'fastify perf shared', 'express perf shared'];
const UNIQUE = [
  'fastify @fastify/compress',
  'fastify @fastify/compress again',
  'fastify perf',
  'fastify perf, compression only',
];
const VISITORS = ['raw', 'fastify perf shared', 'express perf shared'];
/** One turn shows what becomes of them. */
const VISITORS_ONCE = ['fastify perf', 'fastify @fastify/compress'];
const SLOW = [
  'fastify @fastify/compress',
  'fastify @fastify/compress again',
  'fastify @fastify/compress gzip',
  'express compression',
  'fastify @fastify/compress br 11',
];

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

/** Rounds of a burst for each variant in turn, in fresh processes for each generation; ratios against the first one. */
async function closedLoop(
  all,
  bytes,
  changes,
  connections,
  { total = flags.rounds, generationCount = flags.generations, checked = true } = {},
) {
  const names = all.filter((name, index) => index < 2 || wanted(name));
  const generations = [];
  const discarded = [];
  const rounds = Math.max(1, Math.round(total / generationCount));
  for (let attempt = 0; generations.length < generationCount && attempt < generationCount * 4; attempt++) {
    const bursts = await generation(names, bytes, changes, connections, rounds);
    const control = median(bursts[names[1]].map(({ cpuMs }, round) => cpuMs / bursts[names[0]][round].cpuMs));
    // Few rounds of single requests tell rows apart that lie a hundredfold apart, and no more.
    if (!checked || Math.abs(control - 1) <= MAX_CONTROL_ERROR) generations.push(bursts);
    else {
      discarded.push(rounded(control));
      // Shown, not counted: a developer on a busy machine still sees what is far outside the noise.
      console.error(table(names.map((name) => rowOf(name, names[0], [bursts]))));
    }
    console.error(
      `${bytes} B ${changes}: generation ${generations.length}/${generationCount}, control ${control.toFixed(3)}`,
    );
  }
  if (generations.length < generationCount)
    throw new Error(`Controls off by > 5 %: ${discarded.join(', ')}. The machine is busy.`);
  const rows = names.map((name) => rowOf(name, names[0], generations));
  return {
    bytes,
    changes,
    connections,
    generations: generationCount,
    rounds: rounds * generationCount,
    discarded,
    rows,
  };
}

async function generation(names, bytes, changes, connections, rounds) {
  const load = await startLoad();
  const servers = [];
  const bursts = Object.fromEntries(names.map((name) => [name, []]));
  try {
    for (const name of names) servers.push(await startServer(variant(name, bytes, changes), flags));
    const requestsOf = [];
    for (const server of servers) {
      requestsOf.push(await warmUp(load, server, connections));
    }
    let order = [];
    for (let round = 0; round < rounds; round++) {
      order = drawOrder([...servers.keys()], order.at(-1));
      for (const index of order)
        bursts[names[index]].push(await burst(load, servers[index], connections, requestsOf[index]));
    }
    return bursts;
  } finally {
    await load.stop();
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** Until it has worked for two seconds; returns how many requests fill a burst. */
async function warmUp(load, server, connections) {
  let requests = connections;
  for (const startedMs = performance.now(); ; requests *= 4) {
    const { requestsPerS } = await burst(load, server, connections, requests);
    if (performance.now() - startedMs < WARM_UP_MS) continue;
    return Math.max(connections, Math.round((requestsPerS * BURST_MS) / 1_000));
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

/** 66.7 requests a second come, whether the server keeps up or not; the variants take turns. */
async function openLoop() {
  const names = VISITORS.filter((name) => name === 'raw' || wanted(name));
  const once = VISITORS_ONCE.filter(wanted);
  const servers = new Map();
  const turns = Object.fromEntries([...names, ...once].map((name) => [name, []]));
  try {
    for (const name of [...names, ...once]) {
      servers.set(name, await startServer(variant(name, THREE_MB, 'live'), flags));
      await servers.get(name).ask('rest');
    }
    for (let turn = 0; turn < Number(flags.turns); turn++) {
      for (const name of turn % 2 === 0 ? names : names.toReversed())
        turns[name].push(await openTurn(servers.get(name)));
    }
    for (const name of once) turns[name].push(await openTurn(servers.get(name)));
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()));
  }
  return {
    ratePerS: 66.7,
    turnS: TURN_MS / 1_000,
    rows: Object.keys(turns).map((name) => visitorsRow(name, turns[name], turns.raw)),
  };
}

async function openTurn(server) {
  const load = await startLoad();
  try {
    // The turn begins with a fresh answer, which must be renewed within it.
    await load.burst({ port: server.port, connections: 10, requests: 20, request });
    await server.ask('wake');
    const before = await server.cpuUs();
    const startedMs = performance.now();
    const target = { port: server.port, connections: 200, ratePerS: 1_000 / 15, durationMs: TURN_MS, request };
    const run = await load.rate({ ...target, raw: true });
    const cpuCores = ((await server.cpuUs()) - before) / 1_000 / (performance.now() - startedMs);
    await server.ask('rest');
    return { ...run, cpuCores, rss: (await server.memory()).rss };
  } finally {
    await load.stop();
  }
}

function visitorsRow(name, turns, rawTurns) {
  const sorted = Float64Array.from(turns.flatMap(({ latenciesMs }) => latenciesMs)).sort();
  const quantile = (q) => rounded(percentile(sorted, q), 1);
  const sum = (pick) => turns.reduce((total, turn) => total + pick(turn), 0);
  return {
    name,
    turns: turns.length,
    due: sum(({ due }) => due),
    ended: sum(({ requests }) => requests),
    errors: sum(({ errors }) => Object.values(errors).reduce((total, count) => total + count, 0)),
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    maxMs: quantile(1),
    p99OfTurnsMs: turns.map(({ latencyMs }) => rounded(latencyMs.p99, 1)),
    p99Ratio: rounded(median(turns.map(({ latencyMs }, turn) => latencyMs.p99 / rawTurns[turn].latencyMs.p99)), 2),
    cpuCores: rounded(median(turns.map(({ cpuCores }) => cpuCores))),
    rssMb: Math.round(Math.max(...turns.map(({ rss }) => rss)) / 2 ** 20),
  };
}

const PARTS = {
  feed: async () => [await closedLoop(FEED, THREE_MB, 'live', 10)],
  shared: async () => [await closedLoop(SHARED, THREE_MB, 'live', 10)],
  visitors: async () => [await openLoop()],
  unique10k: async () => [await closedLoop(UNIQUE, 10_000, 'unique', 50)],
  unique100k: async () => [await closedLoop(UNIQUE, 100_000, 'unique', 50)],
  unique3m: async () => [await closedLoop(UNIQUE, THREE_MB, 'unique', 10)],
  slow: async () => [await closedLoop(SLOW, THREE_MB, 'live', 1, { total: 3, generationCount: 1, checked: false })],
};
const major = nodeMajorOf(flags.node);
const UNIQUE_PARTS = Object.keys(PARTS).filter((part) => part.startsWith('unique'));
for (const part of flags.part.split(',').flatMap((name) => (name === 'unique' ? UNIQUE_PARTS : [name]))) {
  if (!(part in PARTS)) throw new Error(`--part ${part}: expected one of ${Object.keys(PARTS).join(', ')}, or unique.`);
  const where = environment(nodeVersionOf(flags.node));
  const tables = await PARTS[part]();
  for (const { bytes, changes, rows } of tables) {
    console.log(`\n${part}${bytes === undefined ? '' : `, ${bytes} B`}${changes === undefined ? '' : `, ${changes}`}`);
    console.log(table(rows));
  }
  const result = { name: `compression-${part}-node${major}`, ...where, tables };
  if (flags.write && flags.only === null) writeResult(result);
}
