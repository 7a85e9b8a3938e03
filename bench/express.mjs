// express: CPU per request of Nest on Express, bare and with this library.
//
//   npm run bench -- express                          the published run, Node 20
//   npm run bench -- express --node 24                where V8 keeps the hidden classes itself
//
// What would make the numbers lie:
// - All that is listed for `overhead`; the method is the same.
// - Up to Node 22 this library takes work away from V8 (`src/http/express/properties.ts`): these are ratios below 1. A
//   property that an application adds to its requests brings a part of that work back; the rows with `request.user` show it.
// - The handler does nothing. What is saved is a fixed time for each request, whatever else the request does.
import { fileURLToPath } from 'node:url';
import { benchmark, nodeMajorOf, readFlags } from './harness/index.mjs';

const file = fileURLToPath(new URL('overhead/express.mjs', import.meta.url));
const variants = [
  { name: 'bare Nest + Express', file, args: ['bare'] },
  { name: 'bare Nest + Express again', file, args: ['bare'] },
  { name: 'nestjs-perf: latency only', file, args: ['latency'] },
  { name: 'nestjs-perf: all defaults', file, args: ['default'] },
  { name: 'bare, a guard sets `request.user`', file, args: ['bare', 'user'] },
  { name: 'nestjs-perf: all defaults, a guard sets `request.user`', file, args: ['default', 'user'] },
];

const flags = readFlags();
await benchmark(`express-node${nodeMajorOf(flags.node)}`, variants, flags, { request: { path: '/users/42' } });
