import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import type { ManyApps, ManyAppsReport } from '../../fixtures/many-apps.process.js';

const EXIT_DEADLINE_MS = 120_000;
const TEST_DEADLINE_MS = 130_000;
/** Measured: 20 kB at first, 4 kB later, the same without PerfModule. An application that stays is ten times that. */
const MOST_HEAP_PER_APP = 100_000;

/** Runs the applications in a process of their own; rejects when it fails or does not exit by itself. */
function runApps(apps: ManyApps): Promise<ManyAppsReport> {
  const script = join(inject('compiledFixtures'), 'many-apps.process.js');
  return new Promise((resolve, reject) => {
    const options = { timeout: EXIT_DEADLINE_MS, killSignal: 'SIGKILL' as const };
    execFile(process.execPath, ['--expose-gc', script, JSON.stringify(apps)], options, (error, stdout, stderr) => {
      if (error !== null)
        reject(new Error(`exit code ${error.code}, signal ${error.signal}\n${stderr}`, { cause: error }));
      // The sampler writes there of a loop that a slow machine has kept for over a second.
      else if (stderr.replaceAll(/^\[Perf\] .*\n/gm, '') !== '') reject(new Error(stderr));
      else resolve(JSON.parse(stdout) as ManyAppsReport);
    });
  });
}

describe('applications that live at the same time', () => {
  it('share their listeners: Node warns of no leak', { timeout: TEST_DEADLINE_MS }, async () => {
    // Node's limit is 10 listeners on an emitter. What they print rejects.
    const report = await runApps({ atOnce: 12, apps: 1, adapters: ['express'], ways: ['factory'] });
    expect(report.recorded).toBe(1);
  });
});

const LONG = process.env['PERF_LONG'] !== undefined;

describe('applications that are created, serve a request and are closed', () => {
  it(
    'leave no listener, timer, thread, handle, file or memory behind, many of them in one process that exits by itself',
    // With those before the first look 48 applications, about 4 s of CPU time.
    { timeout: TEST_DEADLINE_MS },
    async () => {
      const apps = LONG ? 200 : 24;
      const report = await runApps({ apps, adapters: ['fastify', 'express'], ways: ['factory', 'testing'] });
      const { heapBytes: heapBefore, ...before } = report.before;
      const { heapBytes: heapAfter, ...after } = report.after;
      expect(report.recorded).toBe(apps);
      expect(after).toEqual(before);
      expect(report.uncollected).toBe(0);
      expect((heapAfter - heapBefore) / apps).toBeLessThan(MOST_HEAP_PER_APP);
    },
  );

  const each = (['fastify', 'express'] as const).flatMap((adapter) =>
    (['factory', 'testing'] as const).map((way) => [adapter, way] as const),
  );
  it.runIf(LONG).each(each)(
    'let the process exit by itself, on %s made by %s',
    { timeout: TEST_DEADLINE_MS },
    async (adapter, way) => {
      const report = await runApps({ apps: 1, adapters: [adapter], ways: [way] });
      expect(report.recorded).toBe(1);
    },
  );
});
