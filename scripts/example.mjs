// `npm run example -- <name> [flags]` (`npm run demo` is the one named demo): installs what is locked, builds, runs one folder of examples/.
// Examples read REDIS_URL; where it is not set, the redis-server on PATH is started for the run.
import { existsSync, readdirSync } from 'node:fs';
import { installLocked, run } from './install.mjs';
import { findRedisServer, startRedis } from './redis.mjs';

const [name, ...flags] = process.argv.slice(2);
if (name === undefined || !existsSync(`examples/${name}/main.ts`)) {
  console.error(`Which one? ${readdirSync('examples').join(', ')}`);
  process.exit(1);
}
try {
  installLocked('.');
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
run('node', ['scripts/build.mjs']);
// Apart from `build`, where tests leave a Nest of their own: see test/setup/nest.ts.
run('node_modules/.bin/tsc', ['-p', 'tsconfig.run.json', '--noCheck', '--outDir', '.cache/run']);
const redis = findRedisServer() === null ? null : await startRedis();
try {
  const env = { ...process.env, ...(redis && { REDIS_URL: redis.url }) };
  run('node', ['--enable-source-maps', `.cache/run/examples/${name}/main.js`, ...flags], { env });
} finally {
  await redis?.stop();
}
