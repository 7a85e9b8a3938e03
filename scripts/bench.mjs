// `npm run bench` lists the benchmarks; `npm run bench -- <name> [flags]` builds the library and runs one.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { run } from './install.mjs';

const [name, ...flags] = process.argv.slice(2);
const benches = readdirSync('bench').filter((file) => file.endsWith('.mjs'));

if (name === undefined) {
  console.log('npm run bench -- <name> [--rounds 60] [--generations 6] [--burst 4000] [--node 24] [--no-write]\n');
  for (const file of benches) {
    const [firstLine] = readFileSync(`bench/${file}`, 'utf8').split('\n');
    console.log(`  ${firstLine.replace(/^\/\/ /, '')}`);
  }
} else if (existsSync(`bench/${name}.mjs`)) {
  run(process.execPath, ['scripts/build.mjs']);
  run(process.execPath, [`bench/${name}.mjs`, ...flags]);
} else {
  console.error(
    `There is no benchmark \`${name}\`. These exist: ${benches.map((file) => file.slice(0, -4)).join(', ')}.`,
  );
  process.exitCode = 1;
}
