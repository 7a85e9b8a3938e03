// `npm test`: installs what is locked, gets a real Redis, then every suite that can share the machine, in its bounded form.
//   --nest11, --slow, --measured, --shipped   that project alone
//   --long                            all of them whole, the mutations and the packed tarball's tests
// Other arguments are vitest's.
import { installAllLocked, run } from './install.mjs';
import { ensureRedis } from './redis.mjs';

const ONLY = ['nest11', 'slow', 'measured', 'shipped'];
const given = process.argv.slice(2);
const long = given.includes('--long');
const only = ONLY.filter((project) => given.includes(`--${project}`));
const rest = given.filter((flag) => !['long', ...ONLY].some((own) => flag === `--${own}`));
if (process.platform !== 'linux' && rest.length === 0) {
  console.error(
    'The whole suite needs Linux: cgroups, /proc, signals and a Redis of its own. In a container:\n' +
      '  docker run --rm -it -v "$PWD":/work -w /work node:22 npm test\n' +
      'Single suites run here: npm test -- test/unit/core',
  );
  process.exit(1);
}
try {
  ensureRedis();
  const longOnly = long ? ['test/node-versions', 'test/bullmq5'] : [];
  await installAllLocked(['.', 'test/nest11', 'test/clients', 'test/manifests', ...longOnly]);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

const bounded = !long && rest.length === 0;
// Coverage and single suites need the sources; the long form runs them too.
const env = { ...process.env, ...(long && { PERF_LONG: '1' }), ...(bounded && { PERF_COMPILED: '1' }) };
// `npm test` starts nothing of what is published.
if (!bounded || only.length > 0) run('node', ['scripts/build.mjs']);
const chosen = only.length > 0 ? only : bounded ? ['nest12', 'process'] : [];
const projects = chosen.flatMap((name) => ['--project', name]);
run('node_modules/.bin/vitest', ['run', ...projects, ...rest], { env });
if (long && rest.length === 0) {
  run('node', ['scripts/mutations.mjs']);
  onOtherRuntimes();
  run('node', ['scripts/package-tests.mjs'], { env });
}

/** Suites that depend on the runtime: the context store, and codings with their back-pressure, with one pool thread as well. */
function onOtherRuntimes() {
  const compression = ['--project', 'nest12', 'test/unit/compression', 'test/app/compression'];
  const projects = ['nest12', 'process', 'slow'].flatMap((name) => ['--project', name]);
  const applications = [
    ...projects,
    'test/app',
    'test/nest',
    'test/process',
    'test/slow/clients',
    'test/slow/processes',
  ];
  const newer = (major) => `test/node-versions/node_modules/node${major}/bin/node`;
  for (const { node, pool, suites } of [
    { node: newer(26), pool: 4, suites: applications },
    { node: newer(24), pool: 4, suites: applications },
    { node: newer(24), pool: 1, suites: compression },
    { node: 'node', pool: 1, suites: compression },
  ]) {
    const bounded = { ...process.env, UV_THREADPOOL_SIZE: String(pool) };
    run(node, ['node_modules/vitest/vitest.mjs', 'run', ...suites], { env: bounded });
  }
}
