// Soak: minutes of mixed load with faults in one process. Is memory flat, does nothing leak, and does every counter add up?
//
// `npm run bench -- soak [--minutes 30] [--rate 100] [--no-write]`. Load at a low rate: ordinary requests, durable and in-process
// deferred work, compressed answers, aborts before the answer and inside it, slow readers, errors, 404s, malformed bodies,
// blocks; sinks that throw, reject and stall; a Redis that is killed and comes back, and one that stops answering.
// What would make the figures lie: samples taken under load (they are taken while no request is under way, after two
// collections), a warm-up counted as growth (the first fifth is left out, at least 20 s of it), a counter that is asked about itself
// (the client counts what it sent and saw; the snapshot and the sinks must agree with it).
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '../scripts/redis.mjs';
import { Traffic } from './soak/traffic.mjs';
import { trendOf } from './soak/trend.mjs';
import { disagreements } from './soak/verdict.mjs';

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '100' },
    write: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const totalMs = Number(flags.minutes) * 60_000;
const sampleEveryMs = Math.min(15_000, totalMs / 12);
const faultEveryMs = Math.min(60_000, totalMs / 4);
const DOWN_MS = Math.min(4_000, faultEveryMs / 4);

const folder = mkdtempSync(join(tmpdir(), 'nestjs-perf-soak-'));
let redis = await startRedis({ own: true, appendOnly: true, dir: folder });
const server = fork(
  fileURLToPath(new URL('soak/server.mjs', import.meta.url)),
  [String(redis.port), join(folder, 'spill.ndjson')],
  { execArgv: [] },
);
const [{ port }] = await once(server, 'message');
const asked = new Map();
let nextId = 0;
server.on('message', ({ id, ...answer }) => asked.get(id)?.(answer));
const ask = (type, given = {}) =>
  new Promise((resolve, reject) => {
    const id = nextId++;
    asked.set(id, (answer) => (answer.error === undefined ? resolve(answer) : reject(new Error(answer.error))));
    server.send({ id, type, ...given });
  });
const ended = once(server, 'exit');
void ended.then(([code]) => {
  for (const settle of asked.values()) settle({ error: `The server ended with ${code}.` });
});

const faults = { killed: 0, stalled: 0 };
const traffic = new Traffic(port, Number(flags.rate));
const startedMs = performance.now();
const samples = [];
let underWay = null;
let nextFaultMs = faultEveryMs / 2;
while (performance.now() - startedMs < totalMs) {
  traffic.start();
  await delay(sampleEveryMs);
  if (underWay === null && performance.now() - startedMs > nextFaultMs) {
    nextFaultMs += faultEveryMs;
    underWay = harmRedis().then(() => (underWay = null));
    continue;
  }
  await underWay;
  await traffic.stop();
  samples.push({ atMs: Math.round(performance.now() - startedMs), ...(await ask('sample')) });
  const last = samples.at(-1);
  console.error(
    `${(last.atMs / 60_000).toFixed(1)} min: heap ${mb(last.heapUsed)} MB, rss ${mb(last.rss)} MB, ${last.handles} handles, ${last.files} files, ${last.threads} threads`,
  );
}
await underWay;
await traffic.stop();
const measuredMs = performance.now() - startedMs;
const server_ = await ask('finish', { accepted: traffic.accepted });
const late = delay(20_000, 'late', { ref: false });
const endedByItself = (await Promise.race([ended, late])) !== 'late';
if (!endedByItself) server.kill('SIGKILL');
await redis.stop();
rmSync(folder, { recursive: true, force: true });

const warm = samples.filter(({ atMs }) => atMs > Math.max(20_000, measuredMs / 5));
const trends = Object.fromEntries(
  ['heapUsed', 'rss', 'external', 'handles', 'files', 'threads'].map((name) => [
    name,
    trendOf(warm.map((sample) => [sample.atMs, sample[name]])),
  ]),
);
const problems = disagreements({ client: traffic, server: server_, trends });
if (!endedByItself) problems.push('the process did not end by itself within 20 s after app.close()');
const sent = Object.values(traffic.counts).reduce((sum, { sent }) => sum + sent, 0);
const result = {
  name: 'soak',
  node: process.version,
  minutes: measuredMs / 60_000,
  requests: sent,
  cpuShareOfOneCore: samples.at(-1).cpuSeconds / (measuredMs / 1000),
  faults,
  trends,
  client: { routes: traffic.counts, acceptedOrders: traffic.accepted.length, errors: traffic.errors },
  server: { ...server_, warnings: server_.warnings.slice(-20) },
  samples,
  problems,
};
if (flags.write) writeFileSync('bench/results/soak.json', `${JSON.stringify(result, null, 1)}\n`);
console.log(JSON.stringify({ ...result, samples: samples.length }, null, 2));
console.log(problems.length === 0 ? 'Flat, and everything adds up.' : `PROBLEMS\n- ${problems.join('\n- ')}`);
process.exitCode = problems.length === 0 ? 0 : 1;

/** Killed with its data kept and started again, or stopped and continued, in turn. */
async function harmRedis() {
  if (faults.killed <= faults.stalled) {
    faults.killed += 1;
    await redis.stop({ keepData: true });
    await delay(DOWN_MS);
    redis = await startRedis({ own: true, appendOnly: true, port: redis.port, dir: folder });
  } else {
    faults.stalled += 1;
    redis.child.kill('SIGSTOP');
    await delay(DOWN_MS);
    redis.child.kill('SIGCONT');
  }
  // Until what waited for it is through: a sample beside that would measure the backlog.
  await delay(DOWN_MS);
}

function mb(bytes) {
  return (bytes / 1e6).toFixed(1);
}
