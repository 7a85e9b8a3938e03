// `npm run check`: everything but the benchmarks. The first failure ends it with its exit code.
import { run } from './install.mjs';

for (const [script, ...options] of [
  ['build'],
  ['api'],
  ['typecheck'],
  ['lint'],
  ['format'],
  ['check:package'],
  ['test'],
]) {
  console.log(`\n> ${script}`);
  run('npm', ['run', '--silent', script, ...options]);
}
