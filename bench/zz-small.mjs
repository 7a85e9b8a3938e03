import { fileURLToPath } from 'node:url';
import { benchmark, nodeMajorOf, readFlags } from './harness/index.mjs';
const file = fileURLToPath(new URL('zz-small-server.mjs', import.meta.url));
const v = (name, ...args) => ({ name, file, args });
const flags = readFlags();
const variants = [
  v('bare', 'bare'),
  v('bare again', 'bare'),
  v('old latency', '../dist-base/index.js', 'latency'),
  v('old +compression', '../dist-base/index.js', 'compression'),
  v('new latency', '../dist/index.js', 'latency'),
  v('new +compression', '../dist/index.js', 'compression'),
];
await benchmark(
  `zz`,
  variants,
  { ...flags, write: false },
  { command: 'zz', request: { path: '/users/42', headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } } },
);
