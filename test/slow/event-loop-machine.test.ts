import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { either } from '../fixtures/app.js';
import { BlockersProcess } from '../fixtures/blockers-process.js';
import { Load } from '../fixtures/load.js';
import { until } from '../fixtures/until.js';

const INNOCENTS = Array.from({ length: 12 }, (_, i) => `/innocent/${i}`);

const TIMES = process.env['PERF_LONG'] === undefined ? 1 : 3;

// What the machine does to a process is no request's fault.
describe.each(either('fastify'))('a process that the machine does not let run, on %s', (adapter) => {
  let server: BlockersProcess;
  let load: Load;
  beforeAll(async () => {
    server = await BlockersProcess.start({ adapter });
    load = await Load.start(server.port);
    for (let i = 0; i < 30; i++) await load.get('/quick');
  });
  beforeEach(async () => {
    await server.settle();
    server.blocks.length = 0;
  });
  afterAll(async () => {
    server.kill();
    await load.close();
  });
  const isStopped = (): boolean => /^\d+ \(.*\) T /.test(readFileSync(`/proc/${server.child.pid}/stat`, 'utf8'));

  /** Once it stands still, for this long. */
  const resumeAfter = async (ms: number): Promise<void> => {
    await until('the process is stopped', isStopped);
    await delay(ms);
    server.child.kill('SIGCONT');
  };

  it('was stopped inside a request: not scheduled, and nobody is named', async () => {
    const causes: string[] = [];
    // A busy machine may not let the sampler run either until the verdict: then it is unknown, or a suspicion.
    for (let i = 0; i < 20 && !causes.includes('not-scheduled'); i++) {
      const [stopped] = await Promise.all([load.get('/stopped'), load.get('/victim/50'), resumeAfter(300)]);
      expect(stopped.status).toBe(200);
      await server.settle();
      causes.push(...server.blocks.filter(({ durationMs }) => durationMs > 250).map(({ cause }) => cause));
    }
    expect(causes.at(-1)).toBe('not-scheduled');
    for (const { request } of server.blocks) expect(request).toBeNull();
    const paused = server.blocks.filter(({ cause }) => cause === 'not-scheduled');
    for (const { suspect } of paused) expect(suspect).toBeNull();
  });

  it('was stopped while it waited for events: nobody is named', async () => {
    const waiting = load.get('/victim/400');
    await until('the request is in flight', async () => {
      const { routes } = await server.settle();
      return routes.some(({ route, inFlight }) => route === '/victim/:ms' && inFlight > 0);
    });
    server.child.kill('SIGSTOP');
    await resumeAfter(200);
    expect((await waiting).status).toBe(200);
    await server.settle();
    for (const { request, suspect } of server.blocks) expect([request, suspect]).toEqual([null, null]);
  });

  it('was stopped for seconds: no hang is written to stderr', async () => {
    for (let i = 0; i < TIMES; i++) {
      server.child.kill('SIGSTOP');
      await resumeAfter(1_500);
      expect((await load.get('/quick')).status).toBe(200);
    }
    await server.settle();
    expect(server.stderr).not.toContain('still is');
  });

  // Five blocks at half a core's speed: about 3 s.
  it('shares one core with another program: no innocent request is named', async () => {
    const program = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
    try {
      for (const { pid } of [server.child, program]) execFileSync('taskset', ['-a', '-c', '-p', '0', `${pid}`]);
      load.loop(INNOCENTS);
      for (const kind of ['loop', 'sort', 'regex', 'wait', 'pbkdf2']) await load.get(`/later/${kind}?ms=120`);
      expect(await load.stopLoops()).toBeGreaterThan(12);
      await server.settle();
    } finally {
      program.kill('SIGKILL');
    }
    expect(server.blocks.length).toBeGreaterThan(0);
    for (const { request } of server.blocks) if (request !== null) expect(request.route).toBe('/later/:kind');
  });

  // With a program on each core, the sampler's thread has an answer to read at one stop in eight.
  it('was stopped behind a sample: nobody is suspected', { timeout: 120_000 }, async () => {
    const rounds = 40 * TIMES;
    let suspicions = 0;
    const programs = [0, 1].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
    try {
      const cores = [programs[0]!, server.child, programs[1]!].entries();
      for (const [i, { pid }] of cores) execFileSync('taskset', ['-a', '-c', '-p', i === 2 ? '1' : '0', `${pid}`]);
      for (let i = 0; i < rounds; i++) {
        await Promise.all([load.get('/stopped'), load.get('/victim/50'), resumeAfter(150)]);
        await server.settle();
        suspicions += Number(server.blocks.some(({ suspect }) => suspect !== null));
        server.blocks.length = 0;
      }
    } finally {
      for (const program of programs) program.kill('SIGKILL');
    }
    // A busy machine may not let the sampler run until the verdict.
    expect(suspicions).toBeLessThanOrEqual(TIMES);
  });
});
