// dashboard: what an open page costs the application behind it, and beside swagger-stats and express-status-monitor.
//
//   npm run bench -- dashboard                       the published run, on Express (the others are middleware for it)
//   npm run bench -- dashboard --part page --rounds 40 --generations 4
//   npm run bench -- dashboard --part data         how long one answer with 500 routes takes
//
// 200 routes that all have traffic. An open page is a process that asks what the page's own script would: ours and
// swagger-stats' every 2 s, express-status-monitor's socket is told once a second.
//
// Sources of error, and how each is excluded:
// - Short bursts: an answer every 2 s falls into some bursts and not into others. A burst is 4 s of requests.
// - The busier the server, the smaller the page's share: it costs the same at 10,000 requests a second and at 10.
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import { benchmark, readNodeMajor, readFlags } from './harness/index.mjs';
import { measureData } from './dashboard/data.mjs';
import { listPaths } from './dashboard/routes.mjs';

const file = fileURLToPath(new URL('dashboard/server.mjs', import.meta.url));
const ROUTES = 200;
const server = (name, which, open = []) => ({ name, file, args: [which, String(ROUTES), ...open] });

const PARTS = {
  page: [
    server('nestjs-perf, no page', 'defaults'),
    server('nestjs-perf, no page, again', 'defaults'),
    server('nestjs-perf, nobody looks', 'dashboard'),
    server('nestjs-perf, the page is open', 'dashboard', ['open']),
  ],
  peers: [
    server('bare Nest + Express', 'bare'),
    server('bare Nest + Express again', 'bare'),
    server('nestjs-perf, the page is open', 'dashboard', ['open']),
    server('swagger-stats, its page is open', 'swagger-stats', ['open']),
    server('express-status-monitor, its page is open', 'express-status-monitor', ['open']),
  ],
};

const flags = readFlags({ part: { type: 'string' } });
installLocked('bench/peers');
for (const part of flags.part?.split(',') ?? [...Object.keys(PARTS), 'data']) {
  if (part === 'data') {
    await measureData(file, flags);
    continue;
  }
  if (!(part in PARTS)) throw new Error(`--part must be \`page\`, \`peers\` or \`data\`, got \`${part}\`.`);
  const options = { request: { paths: listPaths(ROUTES) }, burstMs: 4_000 };
  await benchmark(`dashboard-${part}-node${readNodeMajor(flags.node)}`, PARTS[part], flags, options);
}
