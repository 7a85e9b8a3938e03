// How long an answer to the page takes when all of 500 routes have been asked for since its last one.
//
// Sources of error, and how each is excluded:
// - `whole` is from the outside: HTTP on both ends and the reading of the body are in it. `longest turn` is what requests wait for.
// - The machine itself stops a busy process at times: `idle turn` is the same measure, as long, with nothing asked.
// - A cold server: V8 has seen 20,000 requests and 20 answers before the first that counts.
import { setTimeout as delay } from 'node:timers/promises';
import { environment, readNodeMajor, readNodeVersion, writeResult } from '../harness/index.mjs';
import { startLoad } from '../harness/load.mjs';
import { startServer } from '../harness/server.mjs';
import { listPaths } from './routes.mjs';

const ROUTES = 500;
const WARM_ANSWERS = 20;
const ANSWERS = 300;
/** Pages share an answer for 1.5 s. */
const EVERY_MS = 1_600;

export async function measureData(file, flags) {
  const where = environment(readNodeVersion(flags.node));
  const load = await startLoad();
  const server = await startServer({ name: 'data', file, args: ['dashboard', String(ROUTES)] }, flags);
  const { port } = server;
  const request = { paths: listPaths(ROUTES) };
  const burst = (requests) => load.burst({ port, connections: 50, requests, request });
  try {
    await burst(20_000);
    const tookMs = [];
    let bytes = 0;
    let lastAt = 0;
    for (let n = 0; n < WARM_ANSWERS + ANSWERS;) {
      await burst(2 * ROUTES);
      await delay(EVERY_MS);
      await server.ask('watch');
      const startedMs = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}/perf/data`);
      const body = await response.text();
      const wholeMs = performance.now() - startedMs;
      const turnMs = await server.ask('watched');
      await server.ask('watch');
      await delay(wholeMs);
      const idleMs = await server.ask('watched');
      const answer = JSON.parse(body);
      // Made before, and still young enough: a dear one is kept longer.
      if (answer.at === lastAt) continue;
      lastAt = answer.at;
      if (answer.routes.length < ROUTES) throw new Error(`An answer has ${answer.routes.length} routes.`);
      bytes = Buffer.byteLength(body);
      n += 1;
      if (n > WARM_ANSWERS) tookMs.push({ 'longest turn': turnMs, 'idle turn': idleMs, whole: wholeMs });
    }
    const rows = Object.keys(tookMs[0]).map((name) => {
      const sorted = tookMs.map((one) => one[name]).toSorted((a, b) => a - b);
      const at = (share) => Math.round(sorted[Math.ceil(share * sorted.length) - 1] * 100) / 100;
      return { name, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: at(1) };
    });
    console.table(rows);
    console.log(`${bytes} bytes an answer.`);
    const options = { routes: ROUTES, answers: ANSWERS, bytes };
    if (flags.write) writeResult({ name: `dashboard-data-node${readNodeMajor(flags.node)}`, ...where, options, rows });
  } finally {
    await server.stop();
    await load.stop();
  }
}
