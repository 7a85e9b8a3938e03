// Builds the published files: a CommonJS bundle for each entry with their shared chunks, and the declarations that their exports reach.
// CommonJS: applications in both formats load it on every Node of `engines`, and Jest loads nothing else.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { pruneDeclarations } from './declarations.mjs';
import { hashSources } from './hash-sources.mjs';
import { run } from './install.mjs';
import { buildPage } from './page.mjs';
import { writeThreadPrograms } from './thread-programs.mjs';

const COMPILED = resolve('.cache/compiled');
/** The hash of all sources, written last: an interrupted build has none. */
const STAMP = join(COMPILED, 'built-from');
const PRODUCTS = ['dist/index.js', 'dist/bin/nestjs-perf.js', 'packages/load/dist/main.js'];
const configurations = ['tsconfig.json', 'tsconfig.build.json', 'packages/load/tsconfig.json', 'package.json'];
const sources = hashSources(['src', 'packages/load/src', 'scripts'], configurations);
// Each command of the gate builds, and the sources are the same: ten seconds each.
if ([...PRODUCTS, STAMP].every(existsSync) && readFileSync(STAMP, 'utf8') === sources) process.exit();
for (const folder of ['dist', COMPILED]) rmSync(folder, { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json']);

await writeThreadPrograms(COMPILED);
await buildPage(join(COMPILED, 'dashboard/page-assets.js'));

const subpaths = readdirSync(join(COMPILED, 'entries')).filter((file) => file.endsWith('.js'));
const entries = subpaths.map((file) => `entries/${file.slice(0, -3)}`);
const root = 'shared/nestjs-perf.index';
// Threads of `offload()` run a file of the package, which loads the other one.
const [thread, serve] = ['entries/offload/worker.thread.cjs', 'offload/worker/serve'];
const bundle = await rolldown({
  input: {
    [root]: join(COMPILED, 'index.js'),
    ...Object.fromEntries([...entries, serve].map((entry) => [entry, join(COMPILED, `${entry}.js`)])),
  },
  external: /^[^./]/,
  platform: 'node',
  plugins: [{ name: 'assigned-exports', renderChunk: assignExports }],
});
await bundle.write({
  dir: 'dist',
  format: 'cjs',
  exports: 'named',
  comments: false,
  // `require()` instead of `import()`: Jest has only that.
  dynamicImportInCjs: false,
  // The event loop knows the library's own frames by such a name.
  chunkFileNames: 'shared/nestjs-perf.[name].js',
  // Two files of what entries and features share: each file costs a fifth of a millisecond. Some entries load no request, and no Nest.
  codeSplitting: {
    groups: [
      { name: 'core', test: /compiled.(?:core|ports)[\\/]/, minShareCount: 2 },
      { name: 'request', test: /compiled.request[\\/]/, minShareCount: 2 },
    ],
  },
});
writeFileSync('dist/package.json', '{"type":"commonjs"}\n');
// Node's lexer reads the names for ES modules from a file's text: 20 and 22 take 10 ms for one of 40 KB.
const names = Object.keys(createRequire(import.meta.url)(resolve(`dist/${root}.js`)));
const exported = names.map((name) => `exports.${name} = root.${name};\n`).join('');
writeFileSync('dist/index.js', `'use strict';\nconst root = require('./${root}.js');\n${exported}`);
copyFileSync(join(COMPILED, thread), findTarget(join(COMPILED, thread)));
const declarations = ['index', ...entries].map((entry) => join(COMPILED, `${entry}.d.ts`));
for (const [file, text] of pruneDeclarations(declarations)) writeFileSync(findTarget(file), text);

// The command line tool: a file of its own, which nobody imports.
const tool = await rolldown({ input: join(COMPILED, 'dashboard/top/main.js'), external: /^node:/, platform: 'node' });
await tool.write({ comments: false, file: 'dist/bin/nestjs-perf.js', format: 'cjs' });
chmodSync('dist/bin/nestjs-perf.js', 0o755);
// The load generator, a package of its own.
rmSync('packages/load/dist', { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'packages/load']);
writeFileSync(STAMP, sources);

/** No export is ever reassigned, and 200 getters would be a sixteenth of what an import parses. */
function assignExports(code) {
  const getter =
    /^Object\.defineProperty\(exports, "(\w+)", \{\s+enumerable: true,\s+get: function \(\) \{\s+return (\S+);\s+\}\s+\}\);$/gm;
  return code.replace(getter, 'exports.$1 = $2;');
}

/** The place of a compiled file in the package. */
function findTarget(file) {
  const target = join('dist', relative(COMPILED, file));
  mkdirSync(dirname(target), { recursive: true });
  return target;
}
