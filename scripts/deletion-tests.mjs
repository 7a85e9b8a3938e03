// Can a feature be deleted with its folder and its lines in the root? Each of these is, in a copy of the sources: what is left
// must compile, and tests of the other features must pass. Part of `.ci/run`, about a minute.
//
//   node scripts/deletion-tests.mjs                all of them
//   node scripts/deletion-tests.mjs compression    one
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';

/** Entries (a file, or a folder with its slash) that go with `src/<name>`; a feature without tests of others is only compiled without. */
const FEATURES = {
  compression: { entries: [], tests: ['test/app/experiments.test.ts'] },
  experiments: { entries: ['statsig/gates', 'openfeature/gates'], tests: ['test/app/compression/requests.test.ts'] },
  dashboard: { entries: [], tests: [] },
  users: { entries: [], tests: [] },
  upstream: { entries: [], tests: [] },
  history: { entries: ['redis/history/'], tests: [] },
};
/** Suites of features that are never deleted here, over Fastify and Express. */
const OF_OTHERS = ['app/defer-results', 'nest/fastify-labels', 'process/resources', 'app/snapshot-endpoint'].map(
  (name) => `test/${name}.test.ts`,
);
const VITEST_CONFIG = `export default {
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  test: { pool: 'forks', execArgv: ['--expose-gc'] },
};`;

const [only] = process.argv.slice(2);
const chosen = Object.keys(FEATURES).filter((name) => only === undefined || name === only);
if (chosen.length === 0) throw new Error(`Which feature? ${Object.keys(FEATURES).join(', ')}`);
for (const name of chosen) withoutFeature(name, FEATURES[name]);

function withoutFeature(name, feature) {
  const copy = mkdtempSync(join(tmpdir(), 'perf-deletion-'));
  try {
    for (const part of ['src', 'test', 'scripts', 'package.json', 'tsconfig.json']) {
      cpSync(part, join(copy, part), { recursive: true, filter: (from) => basename(from) !== 'node_modules' });
    }
    symlinkSync(resolve('node_modules'), join(copy, 'node_modules'));
    rmSync(join(copy, 'src', name), { recursive: true });
    edit(join(copy, 'src/perf.options.ts'), (text) => withoutOption(withoutImports(text, `./${name}/`), name));
    edit(join(copy, 'src/index.ts'), (text) => withoutImports(text, `./${name}/`));
    for (const file of ['src/pipeline.ts', 'src/perf.runtime.ts']) {
      const text = readFileSync(join(copy, file), 'utf8');
      if (text.includes(`from './${name}/`))
        edit(join(copy, file), () => withoutPart(withoutImports(text, `./${name}/`), name));
    }
    for (const entry of feature.entries) {
      const isFolder = entry.endsWith('/');
      rmSync(join(copy, 'src/entries', isFolder ? entry : `${entry}.ts`), { recursive: isFolder });
      const imported = isFolder ? `./${entry}` : `./${entry}.js`;
      edit(join(copy, `src/entries/${entry.split('/')[0]}.ts`), (text) => withoutImports(text, imported));
    }
    const tests = feature.tests.length === 0 ? [] : [...OF_OTHERS, ...feature.tests];
    const config = { extends: './tsconfig.json', include: ['src', ...tests] };
    writeFileSync(join(copy, 'tsconfig.left.json'), JSON.stringify(config));
    run(copy, name, 'tsc', ['-p', 'tsconfig.left.json']);
    writeFileSync(join(copy, 'vitest.config.js'), VITEST_CONFIG);
    if (tests.length > 0) run(copy, name, 'vitest', ['run', ...tests]);
    console.log(
      `ok   without ${name}: compiles${tests.length === 0 ? '' : `, and ${tests.length} suites of others pass`}`,
    );
  } finally {
    rmSync(copy, { recursive: true, force: true, maxRetries: 10 });
  }
}

function edit(path, change) {
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  if (changed === text) throw new Error(`Nothing to take out of ${path}: is this script out of date?`);
  writeFileSync(path, changed);
}

/** Without the statements that import or export from there. */
function withoutImports(text, from) {
  const name = from.replaceAll(/[./]/g, String.raw`\$&`);
  return text.replaceAll(new RegExp(`^(?:import|export) [^;]*? from '${name}[^']*';\\n`, 'gm'), '');
}

/** Without its line in the list and its option. */
function withoutOption(text, name) {
  const option = new RegExp(String.raw`^  /\*\*(?:(?!\*/)[^])*\*/\n  ${name}\?: [^;]*;\n`, 'm');
  return text.replace(`  ${name}Feature,\n`, '').replace(option, '');
}

/** Without its lines in the pipeline and where the parts of that are collected. */
function withoutPart(text, name) {
  const line = new RegExp(String.raw`^ +(?:readonly )?${name}(?:: | && |\?\.).*\n`, 'gm');
  const kept = (found) => (found.trim() === `${name}: null,` ? found : '');
  return text.replace(line, kept).replace(new RegExp(String.raw`\b${name}, (?=.*\} = parts)`), '');
}

function run(cwd, name, command, args) {
  const { status, stdout, stderr } = spawnSync(`node_modules/.bin/${command}`, args, { cwd, encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`Without ${name}, \`${command} ${args.join(' ')}\` fails:\n${stdout}\n${stderr}`);
}
