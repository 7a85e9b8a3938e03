// In the folder of a starter's application: its own scripts build, start and test it, and each must end by itself.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

const NOT_ENDED = /did not exit|failed to exit|force exited|open handle|close timed out/i;
const env = { ...process.env, NO_COLOR: '1' };

/** `npm run <name>`; fails when it does, or when something was left open. */
function runScript(name) {
  const { status, signal, stdout, stderr } = spawnSync('npm', ['run', '--silent', name], {
    env,
    encoding: 'utf8',
    timeout: 180_000,
  });
  assert.equal(status, 0, `npm run ${name}: ${signal ?? status}\n${stdout}${stderr}`);
  assert.doesNotMatch(stdout + stderr, NOT_ENDED, `npm run ${name}`);
}

/** Starts what was built, as `npm run start:prod` does, and asks it once. */
async function answers() {
  const [fromMs, port] = [performance.now(), await freePort()];
  const child = spawn('node', ['dist/main'], { env: { ...env, PORT: String(port) } });
  try {
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
    while (!said.includes('successfully started')) {
      assert.equal(child.exitCode, null, said);
      assert.ok(performance.now() - fromMs < 60_000, said);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const lineMs = performance.now() - fromMs;
    assert.match(said, /LOG \[Perf\] On: \w.* latency, .*Records go to: logger\. Look at `PerfService\.snapshot\(\)`/);
    const response = await fetch(`http://127.0.0.1:${port}/`);
    assert.deepEqual([response.status, await response.text()], [200, 'Hello World!']);
    return `first line after ${lineMs.toFixed(0)} ms`;
  } finally {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

runScript('build');
console.log(await answers());
for (const name of ['test', 'test:e2e']) runScript(name);
