// `npm run test:matrix`: the built package in a real application (test/matrix/app) on every supported Node, Nest, HTTP adapter, BullMQ
// and ioredis, and beside the packages teams use with it. Installs some 1 GB once. `--only "node 20,express"` runs the cells
// whose name holds all of these. Writes bench/results/matrix.md when all cells have run.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installLocked, run } from './install.mjs';
import { runEach, outside, ROOT, runToEnd } from './outside.mjs';
import { ensureRedis, startRedis } from './redis.mjs';

const DEADLINE_MS = 300_000;
const MATRIX = join(ROOT, 'test/matrix');
const OUTSIDE = outside('matrix');

const NODES = ['20.19', '22', '24', '26'];
const NESTS = ['11', '12'];
const ADAPTERS = ['fastify', 'express'];
const QUEUES = ['bullmq5-ioredis5', 'bullmq5-ioredis6', 'bullmq6-ioredis5', 'bullmq6-ioredis6'];

const { values: flags } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const wanted = (name) => flags.only.split(',').every((part) => name.includes(part.trim()));

process.chdir(ROOT);
ensureRedis();
installLocked('.');
installLocked('test/node-versions');
run(process.execPath, ['scripts/build.mjs']);
const nodes = Object.fromEntries(NODES.map((version) => [version, findNode(version)]));
const stacks = {};
for (const nest of NESTS) for (const queue of QUEUES) stacks[`${nest} ${queue}`] = compose(nest, queue);

const startedMs = performance.now();
const redis = await startRedis({ own: true });
const rows = NODES.flatMap((node) => NESTS.flatMap((nest) => ADAPTERS.map((adapter) => ({ node, nest, adapter }))));
const cells = rows.flatMap((row) => [
  ...QUEUES.map((queue) => ({ ...row, queue, scope: 'alone' })),
  { ...row, queue: QUEUES.at(-1), scope: 'beside' },
]);
const nameCell = ({ node, nest, adapter, queue, scope }) =>
  `node ${node}, nest ${nest}, ${adapter}, ${scope === 'alone' ? queue : 'beside others'}`;
const chosen = cells.filter((cell) => wanted(nameCell(cell)));
await runEach(chosen, async (cell) => {
  cell.result = await runCell(cell);
  const { failures, checks, ms } = cell.result;
  const verdict = failures.length === 0 ? 'ok  ' : 'FAIL';
  console.log(`${verdict} ${nameCell(cell)}: ${checks.length} checks, ${(ms / 1000).toFixed(1)} s`);
  for (const failure of failures) console.log(failure);
});
await redis.stop();

const failed = chosen.filter(({ result }) => result.failures.length > 0);
const report = markdown();
console.log(`\n${report}`);
if (chosen.length === cells.length) writeFileSync('bench/results/matrix.md', `${report}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

function findNode(version) {
  const path = join(ROOT, `test/node-versions/node_modules/node${version.split('.')[0]}/bin/node`);
  const exact = execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  if (!exact.startsWith(`${version}.`))
    throw new Error(`${path} is Node ${exact}, and the matrix asks for ${version}.`);
  return { path, exact };
}

/** A private package of test/matrix, installed outside of the repository from its lock. */
function installOutside(name) {
  const at = join(OUTSIDE, 'installed', name);
  mkdirSync(at, { recursive: true });
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) cpSync(join(MATRIX, name, file), join(at, file));
  installLocked(at);
  return join(at, 'node_modules');
}

/** An application's folder with one Nest, one BullMQ, one ioredis and the packed files of this library, compiled. */
function compose(nest, queue) {
  const at = join(OUTSIDE, 'stacks', `nest${nest}-${queue}`);
  const modules = join(at, 'node_modules');
  rmSync(at, { recursive: true, force: true });
  mkdirSync(modules, { recursive: true });
  linkAll(installOutside(`nest${nest}`), modules);
  const queues = installOutside(queue);
  for (const name of ['bullmq', 'ioredis']) symlinkSync(join(queues, name), join(modules, name));
  const [{ files }] = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'], { encoding: 'utf8' }),
  );
  for (const { path } of files) cpSync(join(ROOT, path), join(modules, 'nestjs-perf', path));
  cpSync(join(MATRIX, 'app'), at, { recursive: true });
  // Nest 11 applications are CommonJS, those of Nest 12 are ECMAScript modules: as their starters make them.
  writeFileSync(join(at, 'package.json'), JSON.stringify({ type: nest === '11' ? 'commonjs' : 'module' }));
  run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', at]);
  return at;
}

function linkAll(from, to) {
  for (const name of readdirSync(from)) {
    if (name.startsWith('.')) continue;
    if (name.startsWith('@')) {
      mkdirSync(join(to, name), { recursive: true });
      for (const inner of readdirSync(join(from, name))) symlinkSync(join(from, name, inner), join(to, name, inner));
    } else symlinkSync(join(from, name), join(to, name));
  }
}

/** Runs one application to its own end. */
async function runCell({ node, nest, adapter, queue, scope }) {
  const fromMs = performance.now();
  const command = [nodes[node].path, 'dist/main.js', JSON.stringify({ scope, adapter, redisPort: redis.port })];
  const where = { deadlineMs: DEADLINE_MS, cwd: stacks[`${nest} ${queue}`], env: { NODE_OPTIONS: '' } };
  const { code, stdout, output } = await runToEnd(command, where);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{"check"'));
  const checks = lines.map((line) => JSON.parse(line));
  const failures = checks.filter(({ failed }) => failed !== null).map(({ check, failed }) => `${check}: ${failed}`);
  if (code === null || (code !== 0 && failures.length === 0)) failures.push(`exit code ${code}\n${output}`);
  return { checks, failures, ms: performance.now() - fromMs };
}

function markdown() {
  const readVersion = (folder, name) => JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')).version;
  const at = (nest, queue = QUEUES.at(-1)) => join(stacks[`${nest} ${queue}`], 'node_modules');
  const named = new Set(chosen.filter(({ scope }) => scope === 'beside').flatMap(listTools));
  const together = [...named].filter((name) => name.startsWith('all '));
  const tools = [...[...named].filter((name) => !together.includes(name)), ...together];
  const head = [
    '',
    ...QUEUES.map((queue) => queue.replace('bullmq', 'BullMQ ').replace('-ioredis', ', ioredis ')),
    ...tools,
  ];
  const ofRow = (row) =>
    chosen.filter(({ node, nest, adapter }) => node === row.node && nest === row.nest && adapter === row.adapter);
  const table = rows
    .filter((row) => ofRow(row).length > 0)
    .map((row) => {
      const own = ofRow(row);
      const withQueue = QUEUES.map((queue) =>
        verdict(own.find((cell) => cell.scope === 'alone' && cell.queue === queue)),
      );
      const beside = own.find(({ scope }) => scope === 'beside');
      const withTool = tools.map((tool) => {
        const check = beside?.result.checks.find((candidate) => candidate.check === tool);
        return check === undefined ? '–' : check.failed === null ? 'ok' : 'FAIL';
      });
      const name = `Node ${nodes[row.node].exact}, Nest ${row.nest}, ${row.adapter === 'fastify' ? 'Fastify' : 'Express'}`;
      return [name, ...withQueue, ...withTool];
    });
  const line = (entries) => `| ${entries.join(' | ')} |`;
  const versions = NESTS.map((nest) => {
    const packages = ['@nestjs/core', ...tools.filter((tool) => existsSync(join(at(nest), tool)))];
    return `- Nest ${nest}: ${packages.map((name) => `${name} ${readVersion(at(nest), name)}`).join(', ')}`;
  });
  const redisParts = QUEUES.map(
    (queue) =>
      `bullmq ${readVersion(at('12', queue), 'bullmq')} with ioredis ${readVersion(at('12', queue), 'ioredis')}`,
  );
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  const checks = chosen.reduce((sum, { result }) => sum + result.checks.length, 0);
  return [
    `${chosen.length} applications, ${checks} checks, ${failed.length} applications failed, ${seconds} s (\`npm run test:matrix\`).`,
    '',
    line(head),
    line(head.map((_, index) => (index === 0 ? '---' : ':---:'))),
    ...table.map(line),
    '',
    '- A queue column: zero configuration, records, gate, deferred work, a blamed block, durable work through Redis, compression, resources, and a process that ends by itself after `app.close()`.',
    '- A tool column: the tool does its work beside this library, and the records stay right. `–`: that tool asks for Node 22.',
    ...versions,
    `- Queues: ${redisParts.join('; ')}; Redis on loopback`,
  ].join('\n');
}

function listTools({ result }) {
  return result.checks.map(({ check }) => check);
}

function verdict(cell) {
  return cell === undefined ? '–' : cell.result.failures.length === 0 ? 'ok' : 'FAIL';
}
