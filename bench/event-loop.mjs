// event-loop: what finding blocks costs: CPU per request, p50 and p99; an idle process's CPU, and resident memory.
//
//   npm run bench -- event-loop                                   the published run
//   npm run bench -- event-loop --rounds 12 --generations 2 --only blocks
//   npm run bench -- event-loop --node 24
//   npm run bench -- event-loop --no-requests                     idle CPU and memory alone
//
// Sources of error, and how each is excluded:
// - Requests per second on a busy machine. Trust CPU per request; a generation whose control is off by > 5 % is discarded.
// - The detector's own cost is a row over the row it stands on, and processes differ by more than that: take many of them.
// - A wake-up costs some 100 µs on a small virtual machine and a tenth of that on bare metal: idle CPU is an upper bound.
// - Memory is measured after a collection and differs by a few MB from process to process: medians of several processes.
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  benchmark,
  environment,
  median,
  readNodeMajor,
  readNodeVersion,
  readFlags,
  startLoad,
  startServer,
  writeResult,
} from './harness/index.mjs';

const file = fileURLToPath(new URL('overhead/nest.mjs', import.meta.url));
const variant = (name, which) => ({ name, file, args: ['fastify', which] });
const variants = [
  variant('bare Nest + Fastify', 'bare'),
  variant('bare Nest + Fastify again', 'bare'),
  variant('latency only', 'latency'),
  variant('latency, blocks', 'blocks'),
  variant('all defaults', 'default'),
];
const IDLE = ['bare Nest + Fastify', 'latency only', 'latency, blocks'];
/** The fast tick stops a second after the last request. */
const COMES_TO_REST_MS = 2_500;

const flags = readFlags({
  requests: { type: 'boolean', default: true },
  'idle-seconds': { type: 'string', default: '10' },
  'idle-processes': { type: 'string', default: '5' },
});
const name = `event-loop-node${readNodeMajor(flags.node)}`;
const request = { path: '/users/42' };
if (flags.requests) await benchmark(name, variants, flags, { request, atOneRate: true });
await measureIdle(Number(flags['idle-seconds']), Number(flags['idle-processes']));

/** Share of a core that an idle process uses, some time after its last request, and its resident memory. */
async function measureIdle(idleSeconds, processes) {
  const where = environment(readNodeVersion(flags.node));
  const load = await startLoad();
  const chosen = variants.filter(({ name }) => IDLE.includes(name));
  const measured = chosen.map(() => ({ corePercent: [], rssMiB: [] }));
  try {
    for (let i = 0; i < processes; i++) {
      for (const [row, one] of chosen.entries()) {
        const server = await startServer({ ...one, nodeFlags: ['--expose-gc'] }, flags);
        await load.burst({ port: server.port, connections: 4, requests: 2_000, request });
        await load.forget();
        await delay(COMES_TO_REST_MS);
        const before = await server.cpuUs();
        await delay(idleSeconds * 1_000);
        measured[row].corePercent.push(((await server.cpuUs()) - before) / (idleSeconds * 1e4));
        measured[row].rssMiB.push((await server.ask('rss')) / 2 ** 20);
        await server.stop();
      }
    }
  } finally {
    await load.stop();
  }
  const rows = measured.map(({ corePercent, rssMiB }, row) => ({
    name: chosen[row].name,
    corePercent: Number(median(corePercent).toFixed(3)),
    rssMiB: Number(median(rssMiB).toFixed(1)),
  }));
  if (flags.write) writeResult({ name: `${name}-idle`, ...where, options: { idleSeconds, processes }, rows });
  console.table(rows);
}
