// blame: how many event-loop blocks are reported, and of those the right request and the right line, on each Node version.
//
//   npm run bench -- blame            some 8 minutes; installs the Node versions of test/node-versions
//
// Ten kinds of block (loop, sort, regex, JSON.stringify, synchronous file, process, zlib and crypto calls, Atomics.wait)
// fired one after the other among twelve innocent loops of requests, over both adapters and both ways of telling requests
// apart. It is the long form of test/measured/event-loop-attribution.test.ts, which fails on the first innocent request that
// is named, and below 95 % reported, 90 % named, 90 % located.
//
// What would make the numbers lie:
// - A block during which the machine kept the process from running for 15 % of the time is counted as reported, and no further.
// - A block that the machine's own slowness made shorter than twice the threshold is not counted.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installLocked } from '../scripts/install.mjs';
import { environment, readFlags, writeResult } from './harness/index.mjs';

const flags = readFlags();
const where = environment();
installLocked('test/node-versions');

const folder = mkdtempSync(join(tmpdir(), 'perf-blame-'));
const file = join(folder, 'tally');
const test = ['test/measured/event-loop-attribution.test.ts', '-t', 'name the right request'];
const env = { ...process.env, PERF_LONG: '1', PERF_BLAME_FILE: file };
const { status } = spawnSync('node_modules/.bin/vitest', ['run', ...test], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env,
});
// A line of JSON for each set-up.
const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
rmSync(folder, { recursive: true });

const setups = lines.map((line) => JSON.parse(line));
const rows = [...new Set(setups.map(({ node }) => node))].map((node) => {
  const of = setups.filter((setup) => setup.node === node);
  const sum = (count) => of.reduce((total, setup) => total + setup[count], 0);
  const counts = ['blocks', 'reported', 'fair', 'named', 'located'].map((count) => [count, sum(count)]);
  return { node, setups: of.length, ...Object.fromEntries(counts) };
});
const result = { name: 'blame', ...where, passed: status === 0, rows };
if (flags.write) writeResult(result);
console.table(rows);
if (status !== 0) process.exitCode = 1;
