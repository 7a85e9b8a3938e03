// compression: a live 3 MB feed, one compressed answer for everybody, and unique bodies, against the alternatives.
//
//   npm run bench -- compression                                    all parts, the published run
//   npm run bench -- compression --part feed --rounds 6 --generations 1 --no-write
//   npm run bench -- compression --node 24                          with zstd
//
// Parts, each with a result file of its own: `feed` (10 connections), `shared` (the same, against precompressed bytes: by
// Node alone, by Express, by a Nest handler; a shared answer can be no faster than the last),
// `unique1k`, `unique10k`, `unique50k`, `unique100k` and `unique3m` (bodies that all differ: the worst case for a cache),
// `small-fastify` and `small-express` (bodies below the threshold: what compression costs where it does nothing).
//
// Sources of error, and how each is excluded:
// - Requests per second of the fast variants are bounded by the load generator's core. Trust the CPU per request.
// - A variant's burst lasts half a second, or one request on every connection; ratios are of rates, paired by round.
// - p50 and p99 are under full load, where a slower variant's requests wait for each other.
// - Loopback has no bandwidth limit: on a real link the smaller body wins more than it does here.
// - The feed changes every 15 s, as visitors poll. A variant's bursts lie further apart than half a second, so each pays for
//   more new versions than in reality, where some 1,000 requests share one; `raw` makes its versions between its bursts.
// - `raw` compresses at the level of shared answers, ahead of every request, on the event loop, and does nothing else.
import { fileURLToPath } from 'node:url';
import { benchmark, readNodeMajor, readFlags } from './harness/index.mjs';

const file = fileURLToPath(new URL('compression/server.mjs', import.meta.url));
/** Chrome's header. */
const request = { path: '/feed', headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } };
const THREE_MB = 3_000_000;

const FEED = [
  'fastify @fastify/compress',
  'fastify @fastify/compress again',
  'fastify none',
  'fastify perf',
  'fastify perf shared',
  'express compression',
  'express perf',
  'express perf shared',
];
const SHARED = [
  'raw',
  'raw again',
  'nest on fastify raw',
  'fastify perf shared',
  'express raw',
  'nest on express raw',
  'express perf shared',
];
const small = (adapter) => [`${adapter} perf off`, `${adapter} perf off again`, `${adapter} perf`];
const UNIQUE = ['fastify @fastify/compress', 'fastify @fastify/compress again', 'fastify perf'];
const PARTS = {
  feed: { names: FEED, bytes: THREE_MB, changes: 'live', connections: 10 },
  shared: { names: SHARED, bytes: THREE_MB, changes: 'live', connections: 10 },
  unique1k: { names: UNIQUE, bytes: 1_300, changes: 'unique', connections: 50 },
  unique10k: { names: UNIQUE, bytes: 10_000, changes: 'unique', connections: 50 },
  unique50k: { names: UNIQUE, bytes: 50_000, changes: 'unique', connections: 50 },
  unique100k: { names: UNIQUE, bytes: 100_000, changes: 'unique', connections: 50 },
  unique3m: { names: UNIQUE, bytes: THREE_MB, changes: 'unique', connections: 10 },
  'small-fastify': { names: small('fastify'), bytes: 300, changes: 'unique', connections: 50 },
  'small-express': { names: small('express'), bytes: 300, changes: 'unique', connections: 50 },
};

const flags = readFlags({
  part: { type: 'string', default: Object.keys(PARTS).join() },
  generations: { type: 'string', default: '3' },
});
for (const part of flags.part.split(',')) {
  if (!(part in PARTS)) throw new Error(`--part ${part}: expected some of ${Object.keys(PARTS).join(', ')}.`);
  const { names, bytes, changes, connections } = PARTS[part];
  const variants = names.map((name) => ({ name, file, args: [name.replace(/ again$/, ''), String(bytes), changes] }));
  const name = `compression-${part}-node${readNodeMajor(flags.node)}`;
  await benchmark(name, variants, { ...flags, connections }, { request, burstMs: 500, warmupMs: 2_000 });
}
