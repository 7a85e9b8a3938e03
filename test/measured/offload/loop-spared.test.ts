import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { environment, readNodeMajor, writeResult } from '../../../bench/harness/index.mjs';
import { Cgroup, whyNoCgroups } from '../../fixtures/cgroups/cgroup-lab.js';

const skipped = process.env['PERF_LONG'] === undefined ? 'it takes minutes' : whyNoCgroups();
const HOWS = ['no job', 'main thread', 'piscina', 'offload'] as const;
const PER_SECOND = 50;
const SECONDS = 6;
/** The least disturbed counts: others use the machine too. */
const ROUNDS = 3;

/** An answer's milliseconds, from when it should have been asked for. */
function answered(port: number, path: string, agent: Agent): Promise<number> {
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    get({ port, path, agent, host: '127.0.0.1' }, (response) => {
      response.resume().once('end', () => resolve(performance.now() - startedMs));
    }).once('error', reject);
  });
}

const where = environment();
const command = 'PERF_LONG=1 PERF_WRITE=1 npx vitest run --project measured test/measured/offload/loop-spared.test.ts';

const quantile = (sorted: readonly number[], q: number): number => sorted[Math.ceil(q * sorted.length) - 1]!;

// The p99 of an innocent route, in milliseconds, while a job of 200 ms runs each second. Quoted in docs/offload.md; with PERF_WRITE it is
// written to bench/results.
describe.skipIf(skipped !== null)('an innocent route beside a job of 200 ms each second', { timeout: 600_000 }, () => {
  const close: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const each of close.splice(0).toReversed()) await each();
  });

  async function measured(how: (typeof HOWS)[number], cores: number): Promise<{ p99: number }> {
    const cgroup = new Cgroup(`spared-${cores * 10}`);
    const script = join(inject('compiledFixtures'), 'offload/spared.server.js');
    const server = fork(script, [how], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] });
    close.push(
      () => cgroup.remove(),
      async () => server.kill('SIGKILL') && (await once(server, 'exit')),
    );
    const [{ port }] = (await once(server, 'message')) as [{ port: number }];
    cgroup.limit('parent', { cores });
    cgroup.join(server.pid!);
    const agent = new Agent({ keepAlive: true });
    const jobs: Promise<number>[] = [];
    const answers: Promise<number>[] = [];
    const startedMs = performance.now();
    for (let i = 0; i < PER_SECOND * SECONDS; i++) {
      const dueMs = startedMs + (i * 1_000) / PER_SECOND;
      await delay(Math.max(0, dueMs - performance.now()));
      if (how !== 'no job' && i % PER_SECOND === 10) jobs.push(answered(port, '/job', agent));
      answers.push(answered(port, '/innocent', agent));
    }
    const sorted = (await Promise.all(answers)).sort((a, b) => a - b);
    await Promise.all(jobs);
    agent.destroy();
    for (const each of close.splice(0).toReversed()) await each();
    return { p99: quantile(sorted, 0.99) };
  }

  it.each([0.5, 1, 2])('is served as without the job, with %s cores', async (cores) => {
    const p99 = Object.fromEntries(HOWS.map((how) => [how, Infinity])) as Record<(typeof HOWS)[number], number>;
    for (let round = 0; round < ROUNDS; round++) {
      for (const how of HOWS) p99[how] = Math.min(p99[how], (await measured(how, cores)).p99);
    }
    const rows = HOWS.map((how) => ({ name: how, cores, p99Ms: Math.round(p99[how] * 10) / 10 }));
    console.table(rows);
    if (process.env['PERF_WRITE'] !== undefined) {
      const name = `offload-spared-${cores}-cores-node${readNodeMajor(process.execPath)}`;
      const options = { rounds: ROUNDS, seconds: SECONDS, requestsPerSecond: PER_SECOND, jobMs: 200 };
      writeResult({ name, ...where, command, options, rows });
    }
    expect(p99['main thread']).toBeGreaterThan(100);
    if (cores >= 1) expect(p99.offload).toBeLessThan(Math.max(p99['no job'] * 1.5, p99['no job'] + 5));
    expect(p99.offload).toBeLessThan(p99['main thread'] / 2);
  });
});
