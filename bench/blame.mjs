// blame: how many event-loop blocks are reported, and of those the right request and the right line, on each Node version.
//
//   npm run bench -- blame                     some 20 minutes; installs the Node versions of test/node-versions
//   npm run bench -- blame --no-styles         the kinds of block only, some 8 minutes
//   npm run bench -- blame --no-kinds --only 'Node 24, Nest 12'    only such set-ups; writes nothing
//
// The first table: ten kinds of block (loop, sort, regex, JSON.stringify, synchronous file, process, zlib and crypto calls, Atomics.wait)
// fired one after the other among twelve innocent loops of requests, over both adapters and both ways of telling requests apart. It is the
// long form of the attribution test, which fails on the first innocent request that is named, and below 95 % reported, 90 % named, 90 % located.
// The second: one kind of block in every style of code that test/fixtures/styles.ts lists, among requests of the same route too, with a
// default install, over both adapters, Nest 12 and 11, with and without interceptors. It is the long form of the styles test.
// What would make the numbers lie:
// - A block during which the machine kept the process from running for 15 % of the time is counted as reported, and no further.
// - A block that the machine's own slowness made shorter than twice the threshold is not counted.
// - Where requests share a queue or a connection nobody may be able to tell whose code runs; those styles stand on their own, in `shared`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installLocked } from '../scripts/install.mjs';
import { environment, readFlags, writeResult } from './harness/index.mjs';

const flags = readFlags({
  kinds: { type: 'boolean', default: true },
  styles: { type: 'boolean', default: true },
});
const where = environment();
installLocked('test/node-versions');
installLocked('test/nest11');

const sum = (tallies) => {
  const total = {};
  for (const tally of tallies) {
    for (const [key, count] of Object.entries(tally)) total[key] = (total[key] ?? 0) + count;
  }
  return total;
};

/** Runs the long form of a test; each line that it notes, and whether it has passed. */
function setupsOf(test, pattern) {
  const folder = mkdtempSync(join(tmpdir(), 'perf-blame-'));
  const file = join(folder, 'tally');
  try {
    const args = ['run', '--project', 'unit', `test/faults/${test}.test.ts`, '-t', pattern];
    const env = { ...process.env, PERF_LONG: '1', PERF_BLAME_FILE: file };
    const { status } = spawnSync('node_modules/.bin/vitest', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    return { passed: status === 0, setups: lines.map((line) => JSON.parse(line)) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function kinds() {
  const { passed, setups } = setupsOf('event-loop-attribution', 'name the right request');
  const rows = [...new Set(setups.map(({ node }) => node))].map((node) => {
    const of = setups.filter((setup) => setup.node === node);
    const counts = ['blocks', 'reported', 'fair', 'named', 'located'];
    const totals = counts.map((count) => [count, of.reduce((total, setup) => total + setup[count], 0)]);
    return { node, setups: of.length, ...Object.fromEntries(totals) };
  });
  return { name: 'blame', ...where, passed, rows };
}

function styles() {
  const { passed, setups } = setupsOf('event-loop-styles', flags.only?.join(',') ?? 'every style');
  const names = Object.keys(setups[0]?.styles ?? {});
  return {
    name: 'blame-styles',
    ...where,
    passed,
    rows: setups.map(({ node, nest, adapter, interceptors, own, shared }) => ({
      node,
      nest,
      adapter,
      interceptors,
      own,
      shared,
    })),
    styles: names.map((name) => ({ name, ...sum(setups.map((setup) => setup.styles[name])) })),
  };
}

const COLUMNS = 'blocks reported fair named suspected unknown wrong wrongSuspects victims charged located'.split(' ');
function table(heads, rows) {
  const lines = [[...heads, ...COLUMNS], [...heads.map(() => '---'), ...COLUMNS.map(() => '---:')], ...rows];
  console.log(`${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`);
}

if (flags.kinds) {
  const result = kinds();
  if (flags.write && flags.only === null) writeResult(result);
  console.log(JSON.stringify(result, null, 2));
  if (!result.passed) process.exitCode = 1;
}
if (flags.styles) {
  const result = styles();
  if (flags.write && flags.only === null) writeResult(result);
  const cells = (tally) => COLUMNS.map((column) => tally[column]);
  const rows = result.rows.flatMap(({ node, nest, adapter, interceptors, own, shared }) => {
    const setup = [node, nest, adapter, interceptors ? 'yes' : 'no'];
    return [
      [...setup, 'no', ...cells(own)],
      [...setup, 'yes', ...cells(shared)],
    ];
  });
  table(['node', 'Nest', 'adapter', 'interceptors', 'shared'], rows);
  table(
    ['style'],
    result.styles.map((style) => [style.name, ...cells(style)]),
  );
  if (!result.passed) process.exitCode = 1;
}
