// What users' tools will say about the package: its exports, its types under every resolution, and what nothing uses.
// Needs a build in dist/.
import { run } from './install.mjs';

const checks = {
  'publint: exports, files and formats agree': ['publint', '--strict'],
  'attw: types resolve, and to the right module format, under node10, node16, nodenext and bundler': [
    'attw',
    '--pack',
    '.',
  ],
  'knip: no unused file, export or dependency': ['knip'],
};
for (const [what, [tool, ...options]] of Object.entries(checks)) {
  console.log(`\n${what}`);
  run(`node_modules/.bin/${tool}`, options);
}
