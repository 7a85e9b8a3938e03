// The packed tarball, installed into the private packages of test/package and used there as users do. One line a check.
//
//   node scripts/package-tests.mjs                all of them
//   node scripts/package-tests.mjs nest11-cjs     these
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import {
  holdsEveryTarget,
  holdsOnlyWhatShips,
  isAsLargeAsTold,
  isInstalled,
  isOfLock,
  namesNoVendor,
} from '../test/package/tarball.mjs';
import { run } from './install.mjs';
import { runEach, outside, ROOT, runToEnd } from './outside.mjs';
import { ensureRedis, startRedis } from './redis.mjs';

/** For one command; the runs of Jest are the longest, on a busy machine. */
const DEADLINE_MS = 900_000;
const PACKED = join(ROOT, '.cache', 'packed');
const OUTSIDE = outside('package-tests');
const OWN_TSC = 'node_modules/.bin/tsc';
/** The oldest that is promised. */
const TSC_5_0 = 'node_modules/typescript-5.0/bin/tsc';
/** Much faster than 5.9 and 6, so it also checks what stands inside the declarations. */
const TSC_7 = join(ROOT, OWN_TSC);

const STARTER = join(ROOT, 'test/package/starter.mjs');

const check = (name, ...steps) => ({ name, steps });
/** The package's own sources, which import every way a user would, under one module resolution. */
const types = (label, tsc, resolution, ...more) => {
  const module = { bundler: 'esnext', node10: 'commonjs' }[resolution] ?? resolution;
  const options = ['-p', '.', '--noEmit', '--module', module, '--moduleResolution', resolution, ...more];
  return check(`types under ${resolution}, ${label}`, [tsc, ...options]);
};
const wholly = ['--skipLibCheck', 'false'];
const LONG = process.env.PERF_LONG !== undefined;
/** The short form has each compiler and each resolution once: with what `buildAndRun` and `everyEntry` compile. */
const allPairs = (pairs) => (LONG ? pairs : []);
/** The package's own tsconfig.json has nodenext. */
const buildAndRun = [
  [OWN_TSC, '-p', '.'],
  ['node', 'dist/main.js'],
];

const everyEntry = [
  ...'--ignoreConfig --noEmit --strict --target es2023 --module node16 --types node'.split(' '),
  ...wholly,
  'dist/entries.cts',
  'dist/entries.mts',
];

/** Examples that need no further package. All are compiled; suites of examples in test/slow and test/measured run them too. */
const EXAMPLES = ['quick-start', 'deferred-work', 'history', 'slow-upstream'];
const RUN_EXAMPLES = LONG ? EXAMPLES : ['quick-start'];

const packages = [
  {
    folder: 'nest12-esm',
    copies: EXAMPLES.map((name) => `examples/${name}`),
    checks: [
      types('TypeScript 7', TSC_7, 'bundler', ...wholly),
      ...allPairs([
        ...['node16', 'bundler'].map((way) => types('TypeScript 6', OWN_TSC, way)),
        types('TypeScript 7', TSC_7, 'nodenext', ...wholly),
      ]),
      check('types under nodenext, TypeScript 6; serves on Fastify and Express', ...buildAndRun),
      check('`require` and `import` give the same classes', ['node', 'check/same-class.mjs']),
      check('loads without any vendor; their entries say what to install', ['node', 'check/missing-vendors.mjs']),
      check(
        'examples run that were copied out of the repository',
        [OWN_TSC, '-p', 'tsconfig.examples.json'],
        ...RUN_EXAMPLES.map((name) => ['node', `dist/examples/${name}/main.js`]),
      ),
    ],
  },
  {
    folder: 'nest11-cjs',
    checks: [
      types('TypeScript 5.0', TSC_5_0, 'node10'),
      ...allPairs([
        ...['node16', 'bundler', 'node10'].map((way) => types('TypeScript 5.9', OWN_TSC, way)),
        ...['nodenext', 'bundler'].map((way) => types('TypeScript 5.0', TSC_5_0, way)),
      ]),
      check('types under nodenext, TypeScript 5.9; serves on Fastify and Express', ...buildAndRun),
      check('`require` and `import` give the same classes', ['node', 'check/same-class.cjs']),
      check(
        'declarations of every entry compile where the vendors are installed',
        ['node', 'check/import-every-entry.cjs'],
        [TSC_7, ...everyEntry],
      ),
      check(
        'offloads to workers, from CommonJS and ESM',
        ['node', 'dist/offload/main.js'],
        ['node', 'check/offload.mjs'],
      ),
      check('the root loads no vendor that is installed', ['node', 'check/no-vendor-loaded.cjs']),
      check('a feature that is off is not loaded', ['node', 'check/off-not-loaded.cjs']),
      check('passes under Jest 30 with ts-jest, leaves nothing open', ['node', 'check/jest.cjs']),
    ],
  },
  {
    folder: 'nest12-bundled',
    checks: [
      check(
        'blocks are traced from inside bundles, old syntax and minified',
        [OWN_TSC, '-p', '.'],
        ['node', 'check/bundled.mjs'],
      ),
    ],
  },
  {
    folder: 'nest12-work',
    checks: [
      check('GraphQL over HTTP works and is measured', [OWN_TSC, '-p', '.'], ['node', 'dist/graphql.js']),
      check('cron jobs, queues, messages, sockets and resolvers are measured', ['node', 'dist/work.js']),
    ],
  },
  // The one of Nest 11 installs Jest and webpack: minutes on a small machine.
  ...['nest12-starter', ...(LONG ? ['nest11-starter'] : [])].map((folder) => ({
    folder,
    checks: [check('is built, answers and is tested, and leaves nothing open', ['node', STARTER])],
  })),
];

process.chdir(ROOT);
let failed = 0;
const startedMs = performance.now();
run('node', ['scripts/build.mjs']);
const { tarball, manifest, files, packed } = pack();
const paths = files.map(({ path }) => path);
await report(
  'tarball',
  'holds dist, package.json, README, LICENSE, CHANGELOG, SECURITY, the guides and nothing else',
  () => holdsOnlyWhatShips(paths),
);
await report('tarball', 'is as large as README says', () =>
  isAsLargeAsTold(readFileSync('README.md', 'utf8'), packed, Object.keys(manifest.dependencies ?? {})),
);
await report('tarball', 'holds everything its package.json points at', () => holdsEveryTarget(manifest, paths));
for (const entry of ['index.d.ts', 'entries/testing.d.ts']) {
  await report('tarball', `${entry} names no vendor`, () => namesNoVendor(join(ROOT, 'dist'), entry));
}
const named = process.argv.slice(2);
const chosen = packages.filter(({ folder }) => named.length === 0 || named.includes(folder));
if (chosen.length === 0) throw new Error(`No package is called ${named.join(' or ')}.`);
if (named.length === 0)
  await report('nestjs-perf-load', 'takes its tarball, and compares a server with itself', loadTool);
ensureRedis();
const redis = await startRedis();
process.env['REDIS_PORT'] = String(redis.port);
await runEach(chosen, async ({ folder, checks, copies = [] }) => {
  const at = moveOutside(join(ROOT, 'test/package', folder));
  for (const path of copies) cpSync(path, join(at, path), { recursive: true });
  if (!(await report(folder, 'takes the tarball', () => install(at)))) return;
  for (const { name, steps } of checks) await report(folder, name, () => inOrder(steps, at));
});
await redis.stop();
console.log(`Package tests: ${failed} failed, ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
process.exit(failed === 0 ? 0 : 1);

/** The command line tool, as `npx` installs it. */
async function loadTool() {
  const options = ['--json', '--loglevel=error', '--pack-destination', PACKED];
  const { stdout } = spawnSync('npm', ['pack', ...options], { encoding: 'utf8', cwd: 'packages/load' });
  const at = join(OUTSIDE, 'load');
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'package.json'), '{ "private": true }');
  const install = ['--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await execute(['npm', 'install', ...install, join(PACKED, JSON.parse(stdout)[0].filename)], at);
  const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const url = `http://127.0.0.1:${server.address().port}`;
    const recording = join(at, 'traffic.ndjson');
    writeFileSync(recording, JSON.stringify({ v: 1, method: 'GET', url: '/' }));
    const releases = ['primary', 'secondary', 'candidate'].flatMap((role) => [`--${role}`, url]);
    await execute(['node_modules/.bin/nestjs-perf-load', 'diff', recording, ...releases], at);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function pack() {
  rmSync(PACKED, { recursive: true, force: true });
  mkdirSync(PACKED, { recursive: true });
  const options = ['--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', PACKED];
  const { stdout, stderr, status } = spawnSync('npm', ['pack', ...options], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm pack failed:\n${stderr}`);
  const [packed] = JSON.parse(stdout);
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  return { tarball: join(PACKED, packed.filename), manifest, files: packed.files, packed };
}

/** A fresh copy of a private package, beside what was installed for it before. */
function moveOutside(folder) {
  const at = join(OUTSIDE, basename(folder));
  mkdirSync(at, { recursive: true });
  for (const name of readdirSync(at)) if (name !== 'node_modules') rmSync(join(at, name), { recursive: true });
  const built = new Set(['node_modules', 'dist'].map((name) => join(folder, name)));
  cpSync(folder, at, { recursive: true, filter: (source) => !built.has(source) });
  return at;
}

/** Runs a user's `npm install`, without touching the lock. Peers that do not fit are an error here, as for users. */
async function install(folder) {
  const own = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const unlocked = Object.keys(manifest.dependencies ?? {}).filter((name) => own.dependencies[name] === undefined);
  if (unlocked.length > 0) throw new Error(`Add ${unlocked.join(', ')} to its package.json: its lock must hold them.`);
  isOfLock(own, JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')));
  const installed = join(folder, 'node_modules', manifest.name);
  rmSync(installed, { recursive: true, force: true });
  // All that is locked and the tarball in one: a second npm takes as long as the first.
  const command = ['npm', 'install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error', tarball];
  // npm's cache of a package may be older than the lock file: then the registry is asked.
  await execute([...command, '--prefer-offline'], folder).catch(() => execute(command, folder));
  isInstalled(installed, files);
}

async function inOrder(steps, folder) {
  let said = '';
  for (const step of steps) said = await execute(step, folder);
  return said.trim().split('\n').length === 1 ? said.trim() : '';
}

/** Runs a command to its own end; rejects with all it printed when it fails or does not end by itself. */
async function execute(command, cwd) {
  const { code, stdout, output } = await runToEnd(command, { deadlineMs: DEADLINE_MS, cwd });
  if (code === 0) return stdout;
  throw new Error(`${command.join(' ')}\n${output}`);
}

async function report(where, name, work) {
  const fromMs = performance.now();
  const took = () => `${((performance.now() - fromMs) / 1000).toFixed(1)} s`;
  try {
    const said = await work();
    console.log(`ok   ${where}: ${name} (${took()}${said ? `, ${said}` : ''})`);
    return true;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${where}: ${name} (${took()})\n\n${error.message}`);
    return false;
  }
}
