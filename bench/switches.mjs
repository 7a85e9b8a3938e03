// switches: CPU per request of what is off by default and that HTTP pays for: the liveness port, and `work: true`.
//
//   npm run bench -- switches --node 24
//
// Sources of error: those of overhead.mjs. The base has all defaults, so a ratio is the price of the switch alone.
import { fileURLToPath } from 'node:url';
import { benchmark, readNodeMajor, readFlags } from './harness/index.mjs';

const file = fileURLToPath(new URL('overhead/nest.mjs', import.meta.url));
const variant = (name, which) => ({ name, file, args: ['fastify', which] });

const flags = readFlags();
const variants = [
  variant('all defaults', 'default'),
  variant('all defaults again', 'default'),
  variant('and `eventLoop: { port }`', 'witness'),
  variant('and `work: true`', 'work'),
];
const options = { request: { path: '/users/42' }, atOneRate: true };
await benchmark(`switches-node${readNodeMajor(flags.node)}`, variants, flags, options);
