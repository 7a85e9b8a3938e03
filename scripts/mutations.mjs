// Do the tests notice when a rule is broken? Applies each mutation of test/mutations/*.mjs to a copy of the sources and runs
// the tests that it names: one of them must fail. Part of `npm run test:long`.
//
//   node scripts/mutations.mjs                 all
//   node scripts/mutations.mjs event-loop      one table; a second word chooses rows by name
//
// A mutation that no test notices, or whose text is not found exactly once, ends this with exit code 1.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { mutations } from '../test/mutations/index.mjs';

const TIMEOUT_MS = 90_000;
/** All suites in one run, before anything is broken: a busy machine takes some minutes for it. */
const WHOLE_TIMEOUT_MS = 300_000;
/** Each worker is a process with a test process: more than two at once would only disturb the tests that need time. */
const WORKERS = Math.min(2, availableParallelism());
const [table = '', name = ''] = process.argv.slice(2);
const { PERF_LONG: _, ...bounded } = process.env;

const chosen = mutations.filter((mutation) => mutation.table.includes(table) && mutation.name.includes(name));
if (chosen.length === 0) throw new Error(`No mutation is in a table like "${table}" and named like "${name}".`);
const copies = Array.from({ length: WORKERS }, copyOfSources);
const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  // A process of a killed run may still write there for a moment.
  for (const copy of copies) rmSync(copy, { recursive: true, force: true, maxRetries: 10 });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

// With the same filters: the suites that start servers are long.
const wholes = chosen.filter(({ only }) => only === undefined).flatMap(({ tests }) => tests);
const parts = chosen.filter(({ only }) => only !== undefined).map(({ tests, only }) => ({ tests, only }));
for (const { tests, only } of [{ tests: [...new Set(wholes)], only: null }, ...parts]) {
  if (tests.length === 0) continue;
  const { passed, failed, output } = await testsIn(copies[0], tests, only, WHOLE_TIMEOUT_MS);
  if (passed > 0 && failed === 0) continue;
  console.error(`These must pass before anything is broken: ${tests.join(', ')} ${only ?? ''}\n${output}`);
  process.exit(1);
}

const waiting = [...chosen];
const unnoticed = [];
await Promise.all(
  copies.map(async (copy) => {
    for (let mutation = waiting.shift(); mutation !== undefined; mutation = waiting.shift()) {
      const verdict = await verdictOn(mutation, copy);
      console.log(`${verdict.padEnd(10)} ${mutation.table}: ${mutation.name}`);
      if (verdict !== 'noticed') unnoticed.push(mutation);
    }
  }),
);
console.log(`${chosen.length - unnoticed.length} of ${chosen.length} mutations were noticed.`);
process.exitCode = unnoticed.length === 0 ? 0 : 1;

function copyOfSources() {
  const copy = mkdtempSync(join(tmpdir(), 'perf-mutations-'));
  for (const part of ['src', 'test', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.run.json']) {
    cpSync(part, join(copy, part), { recursive: true, filter: (from) => basename(from) !== 'node_modules' });
  }
  // Tests start compiled processes; nothing else of the build is needed.
  const run = JSON.parse(readFileSync('tsconfig.run.json', 'utf8'));
  writeFileSync(join(copy, 'tsconfig.run.json'), JSON.stringify({ ...run, include: ['src', 'test/fixtures'] }));
  symlinkSync(resolve('node_modules'), join(copy, 'node_modules'));
  return copy;
}

async function verdictOn({ file, find, replace, tests, only }, copy) {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(find).length !== 2) return 'NOT FOUND';
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  try {
    const { passed, failed } = await testsIn(copy, tests, only ?? null);
    if (failed > 0) return 'noticed';
    return passed > 0 ? 'UNNOTICED' : 'NO TEST RAN';
  } finally {
    writeFileSync(path, source);
  }
}

/** Runs test files in a copy: how many tests passed and failed. A run that does not end has done neither. */
async function testsIn(copy, files, only, timeout = TIMEOUT_MS) {
  const report = join(copy, 'report.json');
  rmSync(report, { force: true });
  const config = ['--config', 'test/mutations/vitest.config.ts'];
  const filter = only === null ? [] : ['--testNamePattern', only];
  const child = spawn(
    'node_modules/.bin/vitest',
    ['run', ...config, ...filter, '--reporter=json', '--outputFile', report, ...files],
    // The short form of each proof: a copy lacks the other Node binaries.
    { cwd: copy, env: bounded, stdio: ['ignore', 'pipe', 'pipe'], timeout, killSignal: 'SIGKILL' },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
  running.add(child);
  await new Promise((done) => child.once('close', done));
  running.delete(child);
  try {
    const { numPassedTests, numFailedTests, success } = JSON.parse(readFileSync(report, 'utf8'));
    // A file that could not be loaded has no test that failed, and has shown nothing.
    if (!success && numFailedTests === 0) return { passed: 0, failed: 0, output };
    return { passed: numPassedTests, failed: numFailedTests, output };
  } catch {
    return { passed: 0, failed: 0, output: `${output}\n(no report)` };
  }
}
