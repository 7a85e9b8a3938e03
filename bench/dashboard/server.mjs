// The routes behind one of the pages: `<bare|defaults|dashboard|swagger-stats|express-status-monitor> [open]`.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { PerfModule } from 'nestjs-perf';
import { serveOn } from '../harness/index.mjs';
import { LOAD_CORE, canPin } from '../harness/pinned-process.mjs';
import { portOf, serveNest } from '../overhead/application.mjs';
import { ResourcesController } from './routes.mjs';

const [which, open] = process.argv.slice(2);
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

const metadata = { imports: IMPORTS[which]?.() ?? [], controllers: [ResourcesController] };
const main = async (app) => {
  if (which in MIDDLEWARE) app.use(MIDDLEWARE[which]());
};
const port = portOf(await serveNest(metadata, { express: true, main }));
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
serveOn(port);
