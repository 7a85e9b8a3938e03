// Builds the published files: one for each entry and their shared chunks, as ESM and as CommonJS, and the declarations that they reach.
// `module-sync` in package.json makes both resolve to one class identity. One file is read four times faster than 240.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { run } from './install.mjs';
import { buildPage } from './page.mjs';

const COMPILED = resolve('.cache/compiled');
for (const folder of ['dist', COMPILED]) rmSync(folder, { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json']);

// The programs of the event loop's threads as literals, which no bundler, minifier or coverage tool rewrites: see sampler-source.ts.
const source = join(COMPILED, 'event-loop/sampler-source.js');
const literals = Object.entries(await import(pathToFileURL(source))).map(
  ([name, program]) => `export const ${name} = () => ${JSON.stringify(program())};\n`,
);
writeFileSync(source, literals.join(''));
await buildPage(join(COMPILED, 'dashboard/page-assets.js'));

// Workers run a file of the package, which loads a module of either format: see entries/offload/program.ts and worker.thread.cts.
const workerProgram = join(COMPILED, 'entries/offload/program.js');
const programs = {
  // A bundle in CommonJS has no URL: there the file is missing, which the boot says.
  esm: "export const program = () => new URL('../shared/nestjs-perf.offload-worker.cjs', import.meta.url ?? 'file:///');\n",
  cjs: `import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
export const program = () => pathToFileURL(join(__dirname, '../../shared/nestjs-perf.offload-worker.cjs'));
`,
};

const subpaths = readdirSync(join(COMPILED, 'entries')).filter((file) => file.endsWith('.js'));
const entries = ['index', ...subpaths.map((file) => `entries/${file.slice(0, -3)}`)];
const inputs = Object.fromEntries(entries.map((entry) => [entry, join(COMPILED, `${entry}.js`)]));
const worker = { 'shared/nestjs-perf.offload-worker': join(COMPILED, 'offload/worker/serve.js') };
// The event loop knows the library's own frames by such a name.
const shape = { comments: false, chunkFileNames: 'shared/nestjs-perf.[name].js', exports: 'named' };
await bundle('esm', { ...inputs, ...worker }, { dir: 'dist' });
const thread = readFileSync(join(COMPILED, 'entries/offload/worker.thread.cjs'), 'utf8');
writeFileSync(
  'dist/shared/nestjs-perf.offload-worker.cjs',
  thread.replace('../../offload/worker/serve.js', './nestjs-perf.offload-worker.js'),
);
// `require()` instead of `import()`: Jest has only that.
await bundle('cjs', inputs, { dir: 'dist/cjs', dynamicImportInCjs: false });
// The load generator, a package of its own.
rmSync('packages/load/dist', { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'packages/load']);
// The command line tool: a file of its own, which nobody imports.
const tool = await rolldown({ input: join(COMPILED, 'dashboard/top/main.js'), external: /^node:/, platform: 'node' });
await tool.write({ comments: false, file: 'dist/bin/nestjs-perf.js', format: 'esm' });
chmodSync('dist/bin/nestjs-perf.js', 0o755);
writeFileSync('dist/cjs/package.json', '{"type":"commonjs"}\n');

for (const declaration of reachable(entries.map((entry) => join(COMPILED, `${entry}.d.ts`)))) {
  for (const folder of ['dist', 'dist/cjs']) {
    const target = join(folder, relative(COMPILED, declaration));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(declaration, target);
  }
}

async function bundle(format, input, output) {
  writeFileSync(workerProgram, programs[format]);
  const bundled = await rolldown({ input, external: /^[^./]/, platform: 'node' });
  await bundled.write({ ...shape, ...output, format });
}

/** These declarations and all that they name. */
function reachable(files) {
  const seen = new Set(files);
  for (const file of seen) {
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g)) {
      seen.add(join(dirname(file), `${path}.d.ts`));
    }
  }
  return seen;
}
