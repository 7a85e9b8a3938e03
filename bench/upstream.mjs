// upstream: a handler that makes one fetch and three Redis commands: bare, with this library, with OpenTelemetry's instrumentations.
//
//   npm run bench -- upstream                        the published run
//   npm run bench -- upstream --node 24              servers on Node 24, where OpenTelemetry's packages are at home (22.15 and later)
//
// Sources of error, and how each is excluded:
// - All of `bench/overhead.mjs`, whose harness this is.
// - The upstreams' own CPU: they are processes of their own, on the load generator's core.
// - OpenTelemetry exports to nowhere, and names a span for each call: it tells more, and costs more in production.
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import { startRedis } from '../scripts/redis.mjs';
import { benchmark, readNodeMajor, readFlags } from './harness/index.mjs';
import { LOAD_CORE, PinnedProcess } from './harness/pinned-process.mjs';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const flags = readFlags({ burst: { type: 'string', default: '2000' }, warmup: { type: 'string', default: '20000' } });
installLocked('bench/peers');
const redis = await startRedis({ own: true });
const answering = new PinnedProcess(LOAD_CORE, flags.node, [file('upstream/answering.mjs')]);
try {
  const { port } = await answering.ready;
  const row = (name, which) => ({
    name,
    file: file('upstream/server.mjs'),
    args: [which, `http://127.0.0.1:${port}/`, String(redis.port)],
  });
  const rows = [
    row('bare', 'bare'),
    row('bare again', 'bare'),
    row('nestjs-perf: all defaults', 'default'),
    row('nestjs-perf: all defaults, `upstream: false`', 'no-upstream'),
    row('OpenTelemetry http, undici, ioredis', 'opentelemetry'),
  ];
  await benchmark(`upstream-node${readNodeMajor(flags.node)}`, rows, flags, {
    request: { path: '/orders/42' },
    atOneRate: true,
  });
} finally {
  await answering.stop();
  await redis.stop();
}
