import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it } from 'vitest';
import type { OffloadStats } from '../../../src/entries/offload.js';
import { Cgroup, whyNoCgroups } from '../../fixtures/cgroups/cgroup-lab.js';

const CALLS = 30;
const CORES = process.env['PERF_LONG'] === undefined ? [0.5] : [0.5, 1, 2];
const skipped = whyNoCgroups();

describe.skipIf(skipped !== null).each(CORES)('with %s cores', { timeout: 120_000 }, (cores) => {
  const close: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const each of close.splice(0).toReversed()) await each();
  });

  /** A server in a cgroup of so many cores, and its first message. */
  async function started(how: string): Promise<[ChildProcess, { port: number; code?: string }]> {
    const cgroup = new Cgroup(`refusals-${cores * 10}`);
    cgroup.limit('parent', { cores });
    const script = join(inject('compiledFixtures'), 'offload/refusing.server.js');
    const server = fork(script, [how], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] });
    const exited = once(server, 'exit');
    close.push(
      () => cgroup.remove(),
      async () => server.kill('SIGKILL') && exited,
    );
    cgroup.join(server.pid!);
    const [first] = (await once(server, 'message')) as [{ port: number }];
    return [server, first];
  }

  /** Statuses of many jobs at once, of innocent requests beside them, and what offload() counts. */
  async function flood(how: string) {
    const [server, { port }] = await started(how);
    const ask = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
    const asked = (path: string) => Promise.all(Array.from({ length: CALLS }, () => ask(path)));
    const [jobs, innocent] = await Promise.all([asked('/job'), asked('/innocent')]);
    const answered = once(server, 'message');
    server.send('stats');
    const [stats] = (await answered) as [OffloadStats];
    const count = (status: number): number => jobs.filter((one) => one === status).length;
    return { done: count(200), refused: count(503), innocent: new Set(innocent), stats };
  }

  it('a file that cannot be loaded stops the boot', async () => {
    const [, { code }] = await started('unloadable');
    expect(code).toBe('PERF_ERR_OFFLOAD');
  });

  it('workers that cannot start refuse every call, and none runs on the main thread', async () => {
    const { done, refused, innocent, stats } = await flood('unbootable');
    expect([done, refused, innocent]).toEqual([0, CALLS, new Set([200])]);
    expect(stats).toMatchObject({ done: 0, running: 0, pending: 0 });
  });

  it('a full pool refuses what it has no room for, and none runs on the main thread', async () => {
    const { done, refused, innocent, stats } = await flood('full');
    expect([done, refused, innocent]).toEqual([3, CALLS - 3, new Set([200])]);
    expect(stats).toMatchObject({ done: 3, refused: CALLS - 3, running: 0, pending: 0 });
  });
});
