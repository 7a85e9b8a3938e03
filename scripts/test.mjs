// `npm test`: installs what is locked, gets a real Redis, builds, then every suite in its bounded form.
// `--long` runs the full form of every proof, `--package` only the packed-tarball checks. Uses node:* only.
import { existsSync } from 'node:fs';
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
if (rest.length === 0 && existsSync('scripts/package-tests.mjs')) run('node', ['scripts/package-tests.mjs'], { env });
