// footprint: what the library adds to the start and to the memory of a process, and to its import.
//
//   npm run bench -- footprint --node 24
//
// One hello world on Fastify in fresh processes, which take turns: CPU time until it listens, RSS then, and RSS after
// `--warmup` requests, both behind a forced collection. The import is measured behind Nest's own, in a process without a server.
//
// Sources of error, and how each is excluded:
// - Wall time depends on what else runs: the start is CPU time, of all threads.
// - RSS differs by some MB from process to process: differences are paired by generation, and have intervals.
// - `--expose-gc` collects before RSS is read: a process that never collects so thoroughly may hold more.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  environment,
  medianWithInterval,
  readFlags,
  readNodeMajor,
  readNodeVersion,
  startLoad,
  startServer,
  writeResult,
} from './harness/index.mjs';

const flags = readFlags({ generations: { type: 'string', default: '20' } });
const where = environment(readNodeVersion(flags.node));

const variant = (name, script, ...args) => {
  const file = fileURLToPath(new URL(script, import.meta.url));
  return { name, file, args, nodeFlags: ['--expose-gc'] };
};
const VARIANTS = [
  variant('bare Nest + Fastify', 'footprint/bare.mjs'),
  variant('bare Nest + Fastify again', 'footprint/bare.mjs'),
  variant('nestjs-perf: latency only', 'overhead/nest.mjs', 'fastify', 'latency'),
  variant('nestjs-perf: all defaults', 'overhead/nest.mjs', 'fastify', 'default'),
];

const IMPORTS = `
await import('@nestjs/core'), await import('@nestjs/platform-fastify');
const before = process.cpuUsage();
await import('nestjs-perf');
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1000);`;

const load = await startLoad();

async function measureProcess(variant) {
  const server = await startServer(variant, flags);
  try {
    const bootCpuMs = (await server.cpuUs()) / 1_000;
    const restMb = (await server.ask('rss')) / 1e6;
    const { port } = server;
    const request = { path: '/users/42' };
    await load.burst({ port, connections: flags.connections, requests: flags.warmup, request });
    return { bootCpuMs, restMb, loadedMb: (await server.ask('rss')) / 1e6 };
  } finally {
    await load.forget();
    await server.stop();
  }
}

const generations = [];
const importCpuMs = [];
try {
  for (let i = 0; i < flags.generations; i++) {
    const generation = {};
    const order = i % 2 === 0 ? VARIANTS : VARIANTS.toReversed();
    for (const variant of order) generation[variant.name] = await measureProcess(variant);
    generations.push(generation);
    importCpuMs.push([Number(execFileSync(flags.node, ['--input-type=module', '-e', IMPORTS], { encoding: 'utf8' }))]);
  }
} finally {
  await load.stop();
}

const round = ({ median, low, high }) =>
  Object.fromEntries(Object.entries({ median, low, high }).map(([key, value]) => [key, Math.round(value * 10) / 10]));
const [base] = VARIANTS;
const rows = VARIANTS.map(({ name }) => {
  const measure = (quantity, from) =>
    round(medianWithInterval(generations.map((one) => [one[name][quantity] - (from ? one[from][quantity] : 0)])));
  const quantities = ['bootCpuMs', 'restMb', 'loadedMb'];
  const all = quantities.map((quantity) => [quantity, measure(quantity).median]);
  const more = quantities.map((quantity) => [`${quantity}More`, measure(quantity, base.name)]);
  return { name, ...Object.fromEntries([...all, ...more]) };
});
const imported = round(medianWithInterval(importCpuMs));
const options = { generations: flags.generations, requests: flags.warmup };
const name = `footprint-node${readNodeMajor(flags.node)}`;
console.dir({ name, rows, importCpuMs: imported }, { depth: 4 });
if (flags.write) writeResult({ name, ...where, options, importCpuMs: imported, rows });
