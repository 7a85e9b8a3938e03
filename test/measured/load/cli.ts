import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';

/** Of this process: several suites share it. */
export const folder = mkdtempSync(join(tmpdir(), 'perf-load-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** What `--json` has written. */
  // oxlint-disable-next-line typescript/no-explicit-any -- each command's own shape
  readonly json: any;
}

/** For {@link run}: the process is stopped for half of the time. */
export const STARVED = Symbol('starved');

/** The command line tool in a process of its own: what it spends is not the server's. */
export function run(...given: (string | typeof STARVED)[]): Promise<Ran> {
  const args = given.filter((argument) => typeof argument === 'string');
  const file = join(folder, `${Math.random().toString(36).slice(2)}.json`);
  return new Promise((resolve, reject) => {
    // test/setup/compiled.ts has compiled it.
    const child = spawn('node', ['build/packages/load/src/main.js', ...args, '--json', file]);
    let [stdout, stderr, stopped] = ['', '', false];
    const starving = setInterval(() => {
      stopped = !stopped;
      child.kill(stopped ? 'SIGSTOP' : 'SIGCONT');
    }, 60);
    if (!given.includes(STARVED)) clearInterval(starving);
    child.stdout.on('data', (data) => (stdout += String(data)));
    child.stderr.on('data', (data) => (stderr += String(data)));
    child.once('error', reject);
    child.once('close', (status) => {
      clearInterval(starving);
      let json: unknown = null;
      try {
        json = JSON.parse(readFileSync(file, 'utf8'));
      } catch {
        // It did not come so far.
      }
      resolve({ status, stdout, stderr, json });
    });
  });
}

/** Of the primary, the secondary and the candidate. */
export function runDiff(file: string, urls: readonly string[], ...args: string[]): Promise<Ran> {
  const roles = ['--primary', '--secondary', '--candidate'].flatMap((role, i) => [role, urls[i]!]);
  return run('diff', file, ...roles, ...args);
}

/** Again while the machine was too busy for the generator: that run says nothing. A server may be a fresh one each time. */
export async function runUntilNotVoid(
  command: string,
  server: string | (() => Promise<string>),
  ...args: string[]
): Promise<Ran> {
  const untilMs = performance.now() + 100_000;
  for (let attempt = 1; ; attempt++) {
    const ran = await run(command, typeof server === 'string' ? server : await server(), ...args);
    if (ran.status !== 3 || (attempt >= 4 && performance.now() > untilMs)) return ran;
  }
}

/** On a port of its own, until the test ends. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A recording of these requests, each 10 ms after the one before. */
export function recordingOf(requests: readonly { url: string; [field: string]: unknown }[]): string {
  const file = join(folder, `${Math.random().toString(36).slice(2)}.ndjson.gz`);
  const lines = requests.map((request, i) =>
    JSON.stringify({
      v: 1,
      t: 1_700_000_000_000 + i * 10,
      method: 'GET',
      headers: {},
      body: null,
      session: null,
      status: 200,
      ...request,
    }),
  );
  writeFileSync(file, gzipSync(`${lines.join('\n')}\n`));
  return file;
}
