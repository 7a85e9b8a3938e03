// `npm run demo [-- --seconds 8] [-- --keep]`: installs what is locked, builds, runs the demo. Needs no Redis. Uses node:* only.
import { installLocked, run } from './install.mjs';

try {
  installLocked('.');
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
run('node', ['scripts/build.mjs']);
run('node_modules/.bin/tsc', ['-p', 'tsconfig.run.json']);
run('node', ['--enable-source-maps', 'build/examples/demo/main.js', ...process.argv.slice(2)]);
