// Jest in the ways that users run it. Each must pass, and end by itself with nothing left open: Jest only prints a
// warning about a worker that it had to kill.
const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { cpSync, rmSync } = require('node:fs');
const { dirname, join } = require('node:path');

const jest = join(__dirname, '..', 'node_modules', 'jest', 'bin', 'jest.js');
/** Timings of an earlier run would have Jest use no workers. */
const cache = join(__dirname, '..', 'dist', 'jest-cache');
const ways = {
  default: { options: [] },
  'child processes': { options: ['--maxWorkers=2'] },
  'worker threads': { options: ['--maxWorkers=2', '--workerThreads'], env: { IN_A_THREAD: '1' } },
  'in band, looking for open handles': { options: ['--detectOpenHandles'] },
  instrumented: { options: ['--config', 'jest.instrumented.config.js'], env: { INSTRUMENTED: '1' } },
};

// For the instrumented way: see jest.instrumented.config.js.
const packed = join(dirname(require.resolve('nestjs-perf/package.json')), 'dist');
cpSync(packed, join(__dirname, '..', 'dist', 'beside'), { recursive: true });

void main();

async function main() {
  const postgres = spawn(process.execPath, [join(__dirname, 'postgres.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [port] = await once(postgres.stdout.setEncoding('utf8'), 'data');
    process.env.PG_PORT = port.trim();
    runAll();
  } finally {
    postgres.kill();
  }
}

function runAll() {
  for (const [way, { options, env }] of Object.entries(ways))
    runJest(way, ['--testPathIgnorePatterns=contract', ...options], env);
  runJest('contracts', ['--runInBand', '--detectOpenHandles', 'contract.spec.ts']);
  console.log(Object.keys(ways).join(', '));
}

function runJest(way, options, env) {
  rmSync(cache, { recursive: true, force: true });
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [jest, '--cacheDirectory', cache, ...options],
    { encoding: 'utf8', env: { ...process.env, ...env }, timeout: 90_000 },
  );
  assert.equal(status, 0, `${way}: ${signal ?? status}\n${stdout}${stderr}`);
  assert.doesNotMatch(stdout + stderr, /did not exit|failed to exit|force exited|open handle/i, way);
}
