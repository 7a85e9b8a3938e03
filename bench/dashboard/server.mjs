// The routes behind one of the pages: `<bare|defaults|dashboard|swagger-stats|express-status-monitor> <routes> [open]`.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { PerfModule } from 'nestjs-perf';
import { serveOn } from '../harness/index.mjs';
import { LOAD_CORE, canPin } from '../harness/pinned-process.mjs';
import { readPort, serveNest } from '../overhead/application.mjs';
import { buildController } from './routes.mjs';

const [which, routes, open] = process.argv.slice(2);
const peers = createRequire(new URL('../peers/package.json', import.meta.url));
const authorize = () => true;
const IMPORTS = {
  defaults: () => [PerfModule.forRoot()],
  dashboard: () => [PerfModule.forRoot({ dashboard: { authorize } })],
};
const MIDDLEWARE = {
  'swagger-stats': () => peers('swagger-stats').getMiddleware({}),
  'express-status-monitor': () => peers('express-status-monitor')(),
};

const metadata = { imports: IMPORTS[which]?.() ?? [], controllers: [buildController(Number(routes))] };
const main = async (app) => {
  if (which in MIDDLEWARE) app.use(MIDDLEWARE[which]());
};
const port = readPort(await serveNest(metadata, { express: true, main }));
if (open !== undefined) {
  // A process of its own: what it spends is not the server's.
  const viewer = fileURLToPath(new URL('viewer.mjs', import.meta.url));
  const command = [
    ...(canPin ? ['taskset', '-c', String(LOAD_CORE)] : []),
    process.execPath,
    viewer,
    which,
    String(port),
  ];
  spawn(command[0], command.slice(1), { stdio: ['pipe', 'ignore', 'inherit'] });
}
// The longest time for which nothing else had a turn of the event loop, from `watch` to `watched`.
let longestMs = 0;
let isWatched = false;
let lastMs = 0;
const turn = () => {
  const now = performance.now();
  longestMs = Math.max(longestMs, now - lastMs);
  lastMs = now;
  if (isWatched) setImmediate(turn);
};
const watch = () => {
  [longestMs, isWatched, lastMs] = [0, true, performance.now()];
  setImmediate(turn);
};
const watched = () => {
  isWatched = false;
  return longestMs;
};
serveOn(port, { watch, watched });
