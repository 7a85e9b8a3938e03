// Shared by the package tests and the matrix: a place outside of the repository, and commands that run there.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '..');

/** Outside of the repository: inside, whatever a package lacks would be found in the root's node_modules. Kept between runs. */
export const outside = (name) =>
  join(tmpdir(), `nestjs-perf-${name}-${createHash('sha256').update(ROOT).digest('hex').slice(0, 8)}`);

/** Does `work` with each: two at a time, where there are two cores. */
export async function runEach(list, work) {
  const waiting = [...list];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, worker));
}

/** Runs a command to its own end, or to its deadline: what it has printed, on stdout and in all, and its exit code. */
export function runToEnd([command, ...args], { deadlineMs, cwd, env }) {
  return new Promise((settle, reject) => {
    const given = { ...process.env, NO_COLOR: '1', ...env };
    const child = spawn(command, args, { cwd, env: given, stdio: ['ignore', 'pipe', 'pipe'] });
    let [stdout, output] = ['', ''];
    child.stdout.on('data', (data) => ((stdout += data), (output += data)));
    child.stderr.on('data', (data) => (output += data));
    const timer = setTimeout(() => {
      output += `\nDid not end by itself within ${deadlineMs} ms.`;
      child.kill('SIGKILL');
    }, deadlineMs);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      settle({ code, stdout, output });
    });
  });
}
