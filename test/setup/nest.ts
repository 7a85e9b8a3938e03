import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';

const require = createRequire(import.meta.url);
/** Compiled fixtures find packages here before they look into the installed ones: see test/setup/compiled.ts. */
const BUNDLED = 'build/node_modules';
/** What suites import beside the packages' own entries. */
const DEEP = ['@nestjs/core/helpers/execution-context-host', '@nestjs/core/router/router-execution-context'];
/** Nest shares these with suites, sources and other packages. */
const SHARED = /^(?:reflect-metadata|bullmq|ioredis|graphql|ws)(?:\/|$)/;

/** What the bundles were made of: npm writes its own lock file with each installation. */
const MADE_OF = `${BUNDLED}/made-of`;

/** Bundles Nest 12 with RxJS: every process and thread of a test would take a second to load their 1,000 files. */
export default async function setup(): Promise<void> {
  const sources = createHash('sha256');
  for (const file of ['node_modules/.package-lock.json', 'test/setup/nest.ts']) sources.update(readFileSync(file));
  const madeOf = sources.digest('hex');
  // Another run in this folder may use them.
  if (existsSync(MADE_OF) && readFileSync(MADE_OF, 'utf8') === madeOf) return;
  rmSync(BUNDLED, { recursive: true, force: true });
  const nest = readdirSync('node_modules/@nestjs').map((name) => `@nestjs/${name}`);
  const rxjs = resolve('node_modules/rxjs/dist/esm');
  const bundle = await rolldown({
    input: {
      'rxjs/index': join(rxjs, 'index.js'),
      ...Object.fromEntries(nest.map((name) => [`${name}/index`, require.resolve(name)])),
      ...Object.fromEntries(DEEP.map((path) => [path, require.resolve(`${path}.js`)])),
    },
    platform: 'node',
    resolve: { alias: { rxjs } },
    external: SHARED,
    treeshake: false,
    logLevel: 'silent',
  });
  await bundle.write({
    dir: BUNDLED,
    entryFileNames: '[name].js',
    chunkFileNames: '@nestjs/[name]-[hash].js',
    keepNames: true,
    strictExecutionOrder: true,
  });
  for (const name of ['rxjs', ...nest]) {
    const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'));
    const exports = { '.': './index.js', './*': './*' };
    writeFileSync(`${BUNDLED}/${name}/package.json`, JSON.stringify({ name, version, type: 'module', exports }));
  }
  writeFileSync(MADE_OF, madeOf);
}
