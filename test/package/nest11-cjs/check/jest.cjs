// Jest in the ways that users run it. Each must pass, and end by itself with nothing left open: Jest only prints a warning about a
// worker that it had to kill. PERF_LONG adds worker threads, which few use, and Jest without options, which is one of the others.
const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { cpSync, existsSync, readdirSync, rmSync } = require('node:fs');
const { dirname, join } = require('node:path');

const jest = join(__dirname, '..', 'node_modules', 'jest', 'bin', 'jest.js');
/** The first run fills it: the others compile nothing again. */
const cache = join(__dirname, '..', 'dist', 'jest-cache');
/** The contracts run once. An option would make it another configuration, for which nothing is compiled yet. */
const WITHOUT_CONTRACTS = ['users.spec', 'blocked.spec'];
/** Jest gives a worker 500 ms, and one that has loaded ts-jest and Nest takes some five times as long as a bare Node. */
const MOST_BARE_MS = 100;
/** Ways whose end a busy machine has delayed. */
const notJudged = [];
const ways = {
  'in band, looking for open handles': { options: ['--runInBand', '--detectOpenHandles'] },
  'child processes': { options: ['--maxWorkers=2', ...WITHOUT_CONTRACTS] },
  instrumented: {
    options: ['--config', 'jest.instrumented.config.js', ...WITHOUT_CONTRACTS],
    env: { INSTRUMENTED: '1' },
  },
  ...(process.env.PERF_LONG !== undefined && {
    'worker threads': {
      options: ['--maxWorkers=2', '--workerThreads', ...WITHOUT_CONTRACTS],
      env: { IN_A_THREAD: '1' },
    },
    default: { options: WITHOUT_CONTRACTS },
  }),
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
  rmSync(cache, { recursive: true, force: true });
  for (const [way, { options, env }] of Object.entries(ways)) runJest(way, options, env);
  const judged = Object.keys(ways).join(', ');
  console.log(notJudged.length === 0 ? judged : `${judged}; not judged: ${notJudged.join(', ')}`);
}

/** The control, where a worker has not ended in time. */
function timeBareNode() {
  const startedMs = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  return performance.now() - startedMs;
}

function runJest(way, options, env, tries = 3) {
  // Timings of an earlier run would have Jest use no workers.
  const timings = existsSync(cache) ? readdirSync(cache).filter((name) => name.startsWith('perf-cache-')) : [];
  for (const name of timings) rmSync(join(cache, name));
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [jest, '--cacheDirectory', cache, ...options],
    { encoding: 'utf8', env: { ...process.env, ...env }, timeout: 240_000 },
  );
  assert.equal(status, 0, `${way}: ${signal ?? status}\n${stdout}${stderr}`);
  // Jest gives a worker half a second to end: too little on a busy machine now and then, and each time where something is left open.
  if (/force exited/.test(stderr)) {
    if (tries > 1) return runJest(way, options, env, tries - 1);
    const bareMs = timeBareNode();
    if (bareMs > MOST_BARE_MS) {
      notJudged.push(`${way}: a bare Node takes ${bareMs.toFixed(0)} ms to start and end`);
      return undefined;
    }
  }
  assert.doesNotMatch(stdout + stderr, /did not exit|failed to exit|force exited|open handle/i, way);
}
