// `prepack` of both packages: what is packed without dist installs, and does not start.
import { existsSync, readFileSync } from 'node:fs';

const BUILT = { 'nestjs-perf': 'dist/index.js', 'nestjs-perf-load': 'dist/main.js' };
const { name } = JSON.parse(readFileSync('package.json', 'utf8'));
if (!existsSync(BUILT[name])) {
  console.error(
    `${name} is not built: ${BUILT[name]} is missing. Run \`npm run build\` in the root of the repository first.`,
  );
  process.exitCode = 1;
}
