// `npm test`: installs what is locked, gets a real Redis, builds, then every suite in its bounded form. Other flags are vitest's.
// `--long` runs the full form of every proof, the mutations and the packed tarball's tests too. Uses node:* only.
import { installAllLocked, run } from './install.mjs';
import { ensureRedis } from './redis.mjs';

const [long, rest] = [process.argv.includes('--long'), process.argv.slice(2).filter((flag) => flag !== '--long')];
try {
  ensureRedis();
  const longOnly = long ? ['test/node-versions', 'test/bullmq5'] : [];
  await installAllLocked(['.', 'test/nest11', 'test/clients', ...longOnly]);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

const env = { ...process.env, ...(long && { PERF_LONG: '1' }) };
run('node', ['scripts/build.mjs']);
run('node_modules/.bin/vitest', ['run', ...rest], { env });
if (long && rest.length === 0) {
  run('node', ['scripts/mutations.mjs']);
  compressionEverywhere();
  run('node', ['scripts/package-tests.mjs'], { env });
}

/** Codings, their timing and back-pressure are the runtime's: compression's suites run on newer ones too, and with one pool thread. */
function compressionEverywhere() {
  const suites = ['--project', 'unit', '--project', 'nest12', 'test/unit/compression', 'test/e2e/compression'];
  const newer = (major) => `test/node-versions/node_modules/node${major}/bin/node`;
  for (const [node, pool] of [
    [newer(26), '4'],
    [newer(24), '4'],
    [newer(24), '1'],
    ['node', '1'],
  ]) {
    const bounded = { ...process.env, UV_THREADPOOL_SIZE: pool };
    run(node, ['node_modules/vitest/vitest.mjs', 'run', ...suites], { env: bounded });
  }
}
