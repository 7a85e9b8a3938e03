// Bundles this application as people do and has each bundle block its loop: the block must be traced, in its record and,
// while it lasts, on stderr. What a bundler adds to functions is not there in the sampler's thread.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { build } from 'esbuild';

/** Loaded by Nest where they are installed. */
const optional = [
  '@fastify/multipart',
  '@fastify/static',
  '@fastify/view',
  '@nestjs/microservices',
  '@nestjs/websockets/*',
  'class-transformer',
  'class-validator',
];
const LINE =
  readFileSync('src/render.ts', 'utf8')
    .split('\n')
    .findIndex((line) => line.includes('while')) + 1;
const MAPPED = `src/render.ts:${LINE}:`;
const BLOCK_MS = 1_500;

const bundles = [
  { name: 'minified.cjs', adapter: 'fastify', minify: true, target: 'es2017', format: 'cjs', external: optional },
  // Of little that a minified one has not: in the long form.
  ...(process.env.PERF_LONG === undefined
    ? []
    : [
        {
          name: 'names-kept.cjs',
          adapter: 'express',
          keepNames: true,
          target: 'es2022',
          format: 'cjs',
          external: optional,
        },
      ]),
  {
    name: 'library-only.mjs',
    adapter: 'express',
    minify: true,
    target: 'es2017',
    format: 'esm',
    external: ['@nestjs/*', '@fastify/*', 'reflect-metadata', 'rxjs'],
    // docs/troubleshooting.md has the same line.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  },
];

/**
 * The sampler starts with the first request, and reads a bundle's source map after the block. On a busy machine it may come too
 * late for a sample, or for the 2 s that a record waits: then once more, with a block in which there is time to read the map.
 */
async function run(outfile, adapter, tries = 6) {
  const blockMs = tries === 6 ? BLOCK_MS : 4 * BLOCK_MS;
  const options = { timeout: 120_000 };
  const { stdout, stderr } = await promisify(execFile)('node', [outfile, adapter, String(blockMs)], options);
  const [block, ...more] = JSON.parse(stdout.split('\n').findLast((line) => line.startsWith('[{')) ?? '[]');
  const hangs = stderr.split('\n').filter((line) => line.includes(' and still '));
  const tooLate =
    block?.request === null ||
    block?.location?.startsWith(`${outfile}:`) === true ||
    hangs[0]?.includes('/reports/:ms') !== true ||
    hangs[0].endsWith(' still does');
  return tooLate && tries > 1 ? run(outfile, adapter, tries - 1) : { stdout, stderr, block, more, hangs, tooLate };
}

const notJudged = [];

for (const { name, adapter, ...options } of bundles) {
  const outfile = `out/${name}`;
  await build({
    entryPoints: ['dist/main.js'],
    outfile,
    bundle: true,
    platform: 'node',
    sourcemap: true,
    logLevel: 'error',
    ...options,
  });
  const { stdout, stderr, block, more, hangs, tooLate } = await run(outfile, adapter);
  assert.doesNotMatch(stdout + stderr, /sampler ended/, name);
  // The operating system took the core from the last of six. Or the control, the same application without a bundle, was too late.
  if (tooLate && (block?.cause === 'not-scheduled' || (await run('dist/main.js', adapter)).tooLate)) {
    notJudged.push(name);
    continue;
  }
  // One: to read the map of a bundle must not be a hang of its own.
  assert.equal(hangs.length, 1, `${name}: ${stderr}`);
  assert.match(
    hangs[0],
    /^\[Perf\] GET \/reports\/:ms \([\w$]+\.render\) has blocked the event loop for \d+ ms and still does/,
    name,
  );
  assert.ok(hangs[0].includes(` at ${MAPPED}`), `${name}: ${hangs[0]}`);

  assert.deepEqual(more, [], name);
  assert.equal(block?.request?.route, '/reports/:ms', `${name}: ${stdout}`);
  assert.ok(block.location.startsWith(MAPPED), `${name}: ${block.location}`);
}
const names = bundles.map(({ name }) => name).filter((name) => !notJudged.includes(name));
const unjudged =
  notJudged.length === 0 ? '' : `; not judged, as the machine let nothing be traced: ${notJudged.join(', ')}`;
console.log(names.join(', ') + unjudged);
