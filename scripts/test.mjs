// `npm test`: installs what is locked, gets a real Redis, builds, then every suite in its bounded form.
// `--long` runs the full form of every proof, `--package` only the packed-tarball checks. Uses node:* only.
import { installLocked, run } from './install.mjs';
import { ensureRedis } from './redis.mjs';

const long = process.argv.includes('--long');
const packageOnly = process.argv.includes('--package');
const rest = process.argv.slice(2).filter((argument) => !['--long', '--package'].includes(argument));

try {
  if (!packageOnly) ensureRedis();
  installLocked('.');
  if (!packageOnly) installLocked('test/nest11');
  if (long) {
    installLocked('test/node-versions');
    installLocked('test/bullmq5');
  }
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

const env = { ...process.env, ...(long ? { PERF_LONG: '1' } : {}) };
run('node', ['scripts/build.mjs']);
if (!packageOnly) run('node_modules/.bin/vitest', ['run', ...rest], { env });
if (long && !packageOnly && rest.length === 0) {
  run('node', ['scripts/mutations.mjs']);
  compressionEverywhere();
}
if (rest.length === 0) run('node', ['scripts/package-tests.mjs'], { env });

/** zlib's codings and their timing are the runtime's: compression's suites run on the newest LTS too, and with one pool thread. */
function compressionEverywhere() {
  const suites = ['--project', 'unit', '--project', 'nest12', 'test/unit/compression', 'test/e2e/compression'];
  const node24 = 'test/node-versions/node_modules/node24/bin/node';
  for (const [node, pool] of [
    [node24, '4'],
    [node24, '1'],
    ['node', '1'],
  ]) {
    const bounded = { ...process.env, UV_THREADPOOL_SIZE: pool };
    run(node, ['node_modules/vitest/vitest.mjs', 'run', ...suites], { env: bounded });
  }
}
