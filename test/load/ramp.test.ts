import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { recordingOf, run, runUntilNotVoid, serve } from './cli.js';
import { scripted, SCRIPTS } from './scripted-servers.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const quick = ['--hold', '1s', '--rest', '500ms'];

describe('ramp', { timeout: 120_000 }, () => {
  it('holds below the knee and fails above it, and says so in words, in JSON and by its exit code', async () => {
    // Twice 20 ms at a time: 100 a second.
    const url = await serve(scripted({ workers: 2, workMs: 20 }));
    const gate = ['--gate', 'p95<150ms errors<0.1%'];
    const ran = await runUntilNotVoid('ramp', url, '--start', '40', '--steps', '1,2,4', ...quick, ...gate);
    expect(ran.stdout).toMatch(/^ramp: holds 2X \(80\/s\): p95 \d+ ms\. 4X \(160\/s\) fails p95<150ms: \d+ ms\.$/m);
    expect(ran.stdout).toMatch(/^why: not known: GET \/perf\/snapshot /m);
    expect(ran.status).toBe(1);
    expect(ran.json).toMatchObject({ command: 'ramp', exitCode: 1 });
    expect(ran.json.steps.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['holds', 'holds', 'fails']);
  });

  it('holds all of it, with the requests of a recording', async () => {
    const asked: string[] = [];
    const url = await serve((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers['x-shop']}`);
      response.end('{}');
    });
    const from = recordingOf([{ url: '/a' }, { url: '/b?c=1' }, { url: '/orders', method: 'POST', body: { a: 1 } }]);
    const args = ['--from', from, '--start', '40', '--steps', '1,2', '--header', 'x-shop: 7'];
    const ran = await runUntilNotVoid('ramp', url, ...args, ...quick);
    expect(ran.stdout).toMatch(/^ramp: holds 2X \(80\/s\)/m);
    expect(ran.stdout).toContain(
      "1 requests are left out, since they may change data. If they may be sent: --allow 'POST /orders'",
    );
    expect(ran.status).toBe(0);
    const paths = new Set(asked.filter((line) => !line.includes('/perf/snapshot')));
    expect([...paths].toSorted()).toEqual(['GET /a 7', 'GET /b?c=1 7']);
  });

  it('ends with 2 where the server does not come back after its step', async () => {
    let [sent, startedMs] = [0, 0];
    const url = await serve((request, response) => {
      if (request.url !== '/') return void response.writeHead(404).end();
      startedMs ||= performance.now();
      sent += 1;
      // Once it was asked more than sixty times a second, it never answers well again.
      response.writeHead(sent > 70 ? 500 : 200).end();
    });
    const ran = await runUntilNotVoid(
      'ramp',
      url,
      '--start',
      '30',
      '--steps',
      '1,3',
      ...quick,
      '--gate',
      'p95<1s errors<50%',
    );
    expect(ran.stdout).toContain('It does not recover within the rest');
    expect(ran.status).toBe(2);
  });

  it('counts from the intended start: a server that stands still for a second is seen by all who came then', async () => {
    let stoppedMs = 0;
    const url = await serve((_, response) => {
      const now = performance.now();
      stoppedMs ||= now + 300;
      const left = now > stoppedMs && now < stoppedMs + 600 ? stoppedMs + 600 - now : 0;
      setTimeout(() => response.end(), left);
    });
    const ran = await runUntilNotVoid('ramp', url, '--start', '50', '--steps', '1', '--hold', '1500ms', '--rest', '0s');
    // A client that waits for its answer before it asks again would have seen one slow answer of fifty.
    expect(ran.json.steps[0].durationMs.p90).toBeGreaterThan(200);
  });

  it('calls a step void, never slow, when the generator is starved', async () => {
    const url = await serve((_, response) => response.end());
    const hogs = Array.from({ length: 4 * availableParallelism() }, () =>
      spawn('node', ['-e', 'try { require("os").setPriority(-20) } catch {} for (;;);'], { stdio: 'ignore' }),
    );
    try {
      const ran = await run(
        'ramp',
        url,
        '--start',
        '200',
        '--steps',
        '1',
        '--hold',
        '1s',
        '--rest',
        '0s',
        '--gate',
        'max<1ms',
      );
      expect(ran.stdout).toMatch(/^ramp: holds nothing\. 1X \(200\/s\) is void: /m);
      expect(ran.status).toBe(3);
    } finally {
      for (const hog of hogs) hog.kill('SIGKILL');
    }
  });

  it.each(LONG ? SCRIPTS : SCRIPTS.slice(0, 1))(
    'finds the knee of $name within one step',
    async ({ script, capacity }) => {
      const url = await serve(scripted(script));
      const steps = ['0.5', '0.75', '1', '1.25', '1.5', '2'];
      const args = ['--start', String(capacity), '--steps', steps.join(',')];
      const hold = LONG ? ['--hold', '8s', '--rest', '2s'] : ['--hold', '1500ms', '--rest', '300ms'];
      const ran = await runUntilNotVoid('ramp', url, ...args, ...hold, '--gate', 'p95<300ms errors<1%');
      const held = ran.json.steps.filter(({ outcome }: { outcome: string }) => outcome === 'holds').length;
      // Below its capacity it holds, above it a queue grows; at it, chance decides.
      expect(held).toBeGreaterThanOrEqual(2);
      expect(held).toBeLessThanOrEqual(4);
    },
  );
});
