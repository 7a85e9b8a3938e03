// one-process: what the library costs, all variants in one process: differences below what two processes differ by.
//
//   npm run bench -- one-process                                  the published run
//   npm run bench -- one-process --node 24
//   npm run bench -- one-process --table beyond-store             one of the two tables: of-bare, beyond-store
//   npm run bench -- one-process --rounds 12 --generations 3 --only store
//
// What would make the numbers lie:
// - One process holds one draw of the compiler's luck for each variant's copy of the library, some percent: use several.
// - A detector that goes on while another variant is measured. So each variant is opened, measured and closed.
// - Shared code of the library: what one variant shows the compiler changes the other. Each has its own copy of dist/.
// - Shared code of Nest, Fastify and Node: it is compiled for all variants alike, so what the library changes there (V8 may
//   compile a route function into Fastify's call of it, or not) is not seen. A server alone may pay a percent more.
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { nodeMajorOf, readFlags, benchmarkInOneProcess } from './harness/index.mjs';

const file = fileURLToPath(new URL('one-process/server.mjs', import.meta.url));
/** What is not asked about here. */
const OTHERS = { compression: false, defer: false, resources: false };
const variant = (name, options) => ({ name, options });

const ofBare = [
  variant('bare Nest + Fastify', null),
  variant('bare Nest + Fastify again', null),
  variant('latency only', { ...OTHERS, context: false, eventLoop: false }),
  variant('latency, blocks by the stack', { ...OTHERS, context: false }),
  variant('every feature on by default, blocks by the stack', {}),
];
/** The detector where features need the context store anyway: what it costs beyond the store. */
const beyondTheStore = [
  variant('latency, context store', { ...OTHERS, eventLoop: false, context: true }),
  variant('latency, context store again', { ...OTHERS, eventLoop: false, context: true }),
  variant('latency, blocks by the context store', { ...OTHERS, context: true }),
];

const { table, ...flags } = readFlags({ table: { type: 'string' } });
if (![undefined, 'of-bare', 'beyond-store'].includes(table)) {
  throw new Error(`--table must be \`of-bare\` or \`beyond-store\`, got \`${table}\`.`);
}
const name = `one-process-node${nodeMajorOf(flags.node)}`;
const request = { path: '/users/42' };
const copies = mkdtempSync(join(tmpdir(), 'nestjs-perf-bench-'));
try {
  symlinkSync(resolve('node_modules'), join(copies, 'node_modules'));
  writeFileSync(join(copies, 'package.json'), '{ "type": "module" }');
  if (table !== 'beyond-store') await measure(name, ofBare);
  if (table !== 'of-bare') await measure(`${name}-beyond-store`, beyondTheStore);
} finally {
  rmSync(copies, { recursive: true });
}

async function measure(name, variants) {
  const copied = variants.map((variant, index) => ({ ...variant, library: copyOfLibrary(`${name}-${index}`) }));
  await benchmarkInOneProcess(name, file, copied, flags, { request });
}

function copyOfLibrary(name) {
  cpSync('dist', join(copies, name), { recursive: true });
  return pathToFileURL(join(copies, name, 'index.js')).href;
}
