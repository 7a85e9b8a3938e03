// event-loop: what finding blocks costs: CPU per request, an idle process's CPU, resident memory; beside async_hooks.
//
//   npm run bench -- event-loop                                   the published run
//   npm run bench -- event-loop --rounds 12 --generations 2 --only stack,store
//   npm run bench -- event-loop --node 24
//   npm run bench -- event-loop --idle-seconds 10 --no-requests      idle CPU and memory alone
//   npm run bench -- event-loop --table beyond-store --node 24 --rounds 800 --generations 40 --burst 2000 --connections 16
//                                                   what the detector costs where features need the context store anyway
//
// What would make the numbers lie:
// - Requests per second on a busy machine. Trust CPU per request; a generation whose control is off by > 5 % is discarded.
// - The detector's own cost is a row over the row it stands on, and processes differ by more than that: see one-process, or take
//   many processes and short bursts, which leave a noisy neighbour less time between two that are compared.
// - A wake-up costs some 100 µs on a small virtual machine and a tenth of that on bare metal: idle CPU is an upper bound.
// - Memory is measured after a collection and differs by a few MB from process to process: medians of several processes.
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  benchmark,
  environment,
  median,
  nodeMajorOf,
  nodeVersionOf,
  readFlags,
  startLoad,
  startServer,
  writeResult,
} from './harness/index.mjs';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const variant = (name, ...args) => ({ name, file: file('event-loop/server.mjs'), args });

const variants = [
  variant('bare Nest + Fastify', 'bare'),
  variant('bare Nest + Fastify again', 'bare'),
  variant('latency only', 'latency'),
  variant('latency, blocks by the stack', 'stack'),
  variant('latency, blocks by the stack, safepoints', 'safepoints'),
  variant('latency, context store', 'context'),
  variant('latency, blocks by the context store', 'store'),
  variant('every feature on by default, blocks by the stack', 'default'),
  // Up to a millisecond a request: bursts as long as the others' would take most of the run.
  { ...variant('async_hooks: times', 'async-hooks-times'), burst: 2_000, warmup: 2_000 },
  { ...variant('async_hooks: times and stacks', 'async-hooks-stacks'), burst: 1_000, warmup: 1_000 },
];
const beyondTheStore = [
  variant('latency, context store', 'context'),
  variant('latency, context store again', 'context'),
  variant('latency, blocks by the context store', 'store'),
];
const flags = readFlags({
  requests: { type: 'boolean', default: true },
  table: { type: 'string', default: 'of-bare' },
  'idle-seconds': { type: 'string', default: '10' },
  'idle-processes': { type: 'string', default: '5' },
});
const name = `event-loop-node${nodeMajorOf(flags.node)}`;
const request = { path: '/users/42' };
if (flags.table === 'of-bare') {
  if (flags.requests) await benchmark(name, variants, flags, { request });
  await measureIdle(['bare Nest + Fastify', 'latency only', 'latency, blocks by the stack'], flags);
} else if (flags.table === 'beyond-store') {
  await benchmark(`${name}-beyond-store`, beyondTheStore, flags, { request });
} else throw new Error(`--table must be \`of-bare\` or \`beyond-store\`, got \`${flags.table}\`.`);

/** Share of a core that an idle process uses, some time after its last request, and its resident memory. */
async function measureIdle(names, { 'idle-seconds': seconds, 'idle-processes': processes, ...common }) {
  const load = await startLoad();
  const rows = names.map((name) => ({ name, corePercent: [], rssMiB: [] }));
  try {
    for (let i = 0; i < Number(processes); i++) {
      for (const row of rows) {
        const chosen = variants.find(({ name }) => name === row.name);
        const server = await startServer(chosen, { ...common, nodeFlags: [...common.nodeFlags, '--expose-gc'] });
        await load.burst({ port: server.port, connections: 4, requests: 2_000, request });
        await load.forget();
        // The fast tick stops a second after the last request.
        await delay(2_500);
        const before = await server.cpuUs();
        await delay(Number(seconds) * 1_000);
        row.corePercent.push(((await server.cpuUs()) - before) / (Number(seconds) * 1e4));
        row.rssMiB.push((await server.memory()).rss / 2 ** 20);
        await server.stop();
      }
    }
  } finally {
    await load.stop();
  }
  const result = {
    name: `${name}-idle`,
    ...environment(nodeVersionOf(common.node)),
    options: { idleSeconds: Number(seconds), processes: Number(processes) },
    rows: rows.map(({ name, corePercent, rssMiB }) => ({
      name,
      corePercent: Number(median(corePercent).toFixed(3)),
      rssMiB: Number(median(rssMiB).toFixed(1)),
    })),
  };
  if (flags.write && flags.only === null) writeResult(result);
  console.log(JSON.stringify(result.rows, null, 2));
}
