import { describe, expect, it } from 'vitest';
import { run, runUntilNotVoid, serve, STARVED } from '../../fixtures/load-command.js';
import { scripted, SCRIPTS } from './scripted-servers.js';

const LONG = process.env['PERF_LONG'] !== undefined;

describe('ramp', { timeout: 300_000 }, () => {
  it('holds below the knee and fails above it, and says so in words, in JSON and by its exit code', async () => {
    // Twice 20 ms at a time: 100 a second.
    const url = await serve(scripted({ workers: 2, workMs: 20 }));
    const args = ['--start', '40', '--steps', '2,4', '--hold', '700ms', '--rest', '900ms'];
    const ran = await runUntilNotVoid('ramp', url, ...args, '--gate', 'p95<150ms errors<0.1%');
    expect(ran.stdout).toMatch(/^ramp: holds 2X \(80\/s\): p95 \d+ ms\. 4X \(160\/s\) fails p95<150ms: \d+ ms\.$/m);
    expect(ran.stdout).toMatch(
      /^why: not known: GET \/perf\/snapshot answers 404: see `snapshotEndpoint` of PerfModule\.$/m,
    );
    expect(ran.stdout).toMatch(/^recovery: \d+(\.\d)? ms after 4X\.$/m);
    expect(ran.status).toBe(1);
    expect(ran.json).toMatchObject({ command: 'ramp', exitCode: 1 });
    expect(ran.json.steps.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['holds', 'fails']);
  });

  it('ends with 2 where the server does not come back after its step', async () => {
    const args = ['--start', '30', '--steps', '1,3', '--hold', '800ms', '--rest', '400ms'];
    const ran = await runUntilNotVoid(
      'ramp',
      async () => {
        const cameMs: number[] = [];
        let isBroken = false;
        return serve((request, response) => {
          // Another version's snapshot: it explains nothing, and breaks nothing.
          if (request.url === '/perf/snapshot') return void response.end('{"at":1,"resources":{},"routes":7}');
          const now = performance.now();
          cameMs.push(now);
          isBroken ||= cameMs.filter((ms) => ms > now - 700).length > 45;
          return void response.writeHead(isBroken ? 500 : 200).end();
        });
      },
      ...args,
    );
    expect(ran.stdout).toMatch(/^ramp: holds 1X \(30\/s\).* 3X \(90\/s\) fails p95<1s: an error, errors<1%: \d+ %\.$/m);
    expect(ran.stdout).toMatch(/^It does not recover within the rest after 3X\.$/m);
    expect(ran.stdout).toMatch(/^why: .*errors: \d+ × 500\.$/m);
    expect(ran.status).toBe(2);
  });

  it('refuses --allow without a recording, of which it would allow something', async () => {
    const ran = await run('ramp', 'http://127.0.0.1:1', '--allow', 'POST /orders');
    expect(ran.stderr).toContain('--allow names requests of a recording: give one with --from.');
    expect(ran.status).toBe(64);
  });

  // A machine that stands still for once proves nothing; a wrong count is wrong each time.
  it('counts from the intended start, as a known server answers', { retry: 2 }, async () => {
    // It stands still for 500 ms of each second: whoever comes then waits for the rest of it.
    const url = await serve((_, response) => {
      const left = 500 - (performance.now() % 1_000);
      setTimeout(() => response.end(), Math.max(0, left));
    });
    const args = ['--start', '100', '--steps', '1', '--hold', '1s', '--rest', '0s'];
    const { json } = await runUntilNotVoid('ramp', url, ...args);
    const { p50, p90, p95, max } = json.steps[0].durationMs;
    // Half of them wait 0 to 500 ms, evenly. A client that waits for each answer would have seen two slow ones of a hundred.
    expect(p50).toBeLessThan(60);
    expect(p90 / 400).toBeGreaterThan(0.93);
    expect(p90 / 400).toBeLessThan(1.1);
    expect(p95 / 450).toBeGreaterThan(0.93);
    expect(p95 / 450).toBeLessThan(1.1);
    expect(max).toBeGreaterThan(460);
  });

  it('calls a step void, never slow, when the generator is starved', async () => {
    const url = await serve((_, response) => response.end());
    const args = ['--start', '100', '--steps', '1', '--hold', '300ms', '--rest', '0s', '--gate', 'max<1ms'];
    const ran = await run('ramp', url, ...args, STARVED);
    expect(ran.stdout).toMatch(/^ramp: holds nothing\. 1X \(100\/s\) is void: /m);
    expect(ran.stdout).not.toContain('fails');
    expect(ran.status).toBe(3);
  });

  it.runIf(LONG).each(SCRIPTS)('finds the knee of $name within one step', async ({ script, capacity }) => {
    const url = await serve(scripted(script));
    const steps = ['0.5', '0.75', '1', '1.25', '1.5', '2'];
    const args = ['--start', String(capacity), '--steps', steps.join(','), '--hold', '3s', '--rest', '1s'];
    const ran = await runUntilNotVoid('ramp', url, ...args, '--gate', 'p95<300ms errors<1%');
    const held = ran.json.steps.filter(({ outcome }: { outcome: string }) => outcome === 'holds').length;
    // Below its capacity it holds, above it a queue grows; at it, chance decides.
    expect(held).toBeGreaterThanOrEqual(2);
    expect(held).toBeLessThanOrEqual(4);
  });
});
