import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Inject } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { Offloader, type OffloadOptions } from '../../../src/entries/offload.js';
import { closeOffloadApps, compiled, offloadApp, PROGRAM } from '../../fixtures/offload/app.js';
import { until } from '../../fixtures/until.js';
import { Measured, Missing } from '../../fixtures/offload/modules.js';
import { Reports } from '../../fixtures/offload/reports.js';

let folder: string | null = null;
afterEach(closeOffloadApps);
afterEach(() => {
  if (folder !== null) rmSync(folder, { recursive: true });
  folder = null;
  delete process.env['OFFLOAD_FAILED_ONCE'];
});

@Controller()
class WhereController {
  constructor(@Inject(Reports) private readonly reports: Reports) {}

  @Get()
  where() {
    return this.reports.whereabouts();
  }
}

const NOT_THE_SERVER =
  '`module` of offload() is a file of its own with what the workers need, not the file that starts the application.';

describe('a file that no worker can load stops the boot', { timeout: 180_000 }, () => {
  it.each<[string, string, number, string]>([
    ['ends its process', 'exiting.module', 0, 'worker exited with code: 7'],
    ['throws', 'throwing.module', 1, 'the configuration is missing'],
    [
      'is the one that starts the application',
      'main',
      0,
      `must export one module class, or one as its default export; it has none. ${NOT_THE_SERVER}`,
    ],
  ])('when it %s', async (_what, file, warm, why) => {
    const booting = offloadApp({ offload: { module: compiled(file), threads: 1, warm } });
    await expect(booting).rejects.toMatchObject({ code: 'PERF_ERR_OFFLOAD', message: expect.stringContaining(why) });
  });
});

it('a file that is missing, or TypeScript without a loader, stops the boot with what to do', async () => {
  const missing = new URL('file:///app/offload.module.js');
  await expect(offloadApp({ offload: { module: missing } })).rejects.toThrow(
    "PERF_ERR_OFFLOAD: A worker cannot load `module` of offload(): Cannot find module '/app/offload.module.js'",
  );
  const source = new URL('../../fixtures/offload/modules.ts', import.meta.url);
  await expect(offloadApp({ offload: { module: source, threads: 1 } })).rejects.toThrow(
    /^PERF_ERR_OFFLOAD: A worker cannot load `module` of offload\(\): .* Compile it, or start the process with a loader/s,
  );
}, 180_000);

describe('a worker that cannot start', { timeout: 180_000 }, () => {
  it.each<[string, Partial<OffloadOptions>, string]>([
    ['its application does not boot', { module: compiled('unbootable.module') }, 'the database is away'],
    ['its heap is too small', { heapLimitMb: 1 }, 'memory limit'],
  ])('refuses calls with 503, and never runs them here: %s', async (_what, offload, why) => {
    const metadata = { controllers: [WhereController] };
    const { url, reports, offloader, lines } = await offloadApp({ metadata, offload: { ...offload, threads: 1 } });
    const outcomes = await Promise.allSettled([reports.whereabouts(), reports.whereabouts(), reports.whereabouts()]);
    for (const outcome of outcomes) {
      const reason: unknown = expect.objectContaining({ code: 'PERF_ERR_OFFLOAD_DOWN' });
      expect(outcome).toMatchObject({ status: 'rejected', reason });
    }
    const answer = await fetch(url);
    expect([answer.status, await answer.json()]).toEqual([503, { statusCode: 503, message: 'Service Unavailable' }]);
    await expect(reports.invert(Uint8Array.of(1))).rejects.toThrow(why);
    expect(offloader.stats()).toMatchObject({ running: 0, pending: 0, done: 0, failed: 0, timedOut: 0, refused: 5 });
    expect(lines.filter((line) => line.includes('a worker of offload() could not start')).length).toBeLessThan(3);
  });

  it('costs its own calls alone while another worker serves', async () => {
    folder = mkdtempSync(join(tmpdir(), 'offload-'));
    process.env['OFFLOAD_FAILED_ONCE'] = join(folder, 'one');
    const { reports, lines } = await offloadApp({ offload: { module: compiled('one-boots.module'), threads: 2 } });
    await reports.whereabouts();
    const signal = new Int32Array(new SharedArrayBuffer(8));
    const held = reports.hold(signal.buffer);
    const waiting = Promise.allSettled(Array.from({ length: 8 }, () => reports.whereabouts()));
    await until('the second worker does not start', () => lines.some((line) => line.includes('too many connections')));
    Atomics.store(signal, 0, 1);
    Atomics.notify(signal, 0);
    await held;
    const served = (await waiting).filter(({ status }) => status === 'fulfilled');
    expect(served.length).toBe(7);
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
  });

  it('is tried again after a while, and then works', async () => {
    folder = mkdtempSync(join(tmpdir(), 'offload-'));
    process.env['OFFLOAD_FAILED_ONCE'] = join(folder, 'failed');
    const { reports, offloader } = await offloadApp({
      offload: { module: compiled('failing-once.module'), threads: 1 },
    });
    await expect(reports.whereabouts()).rejects.toMatchObject({ code: 'PERF_ERR_OFFLOAD_DOWN' });
    await until('the next one starts', () =>
      reports.whereabouts().then(
        ({ isMainThread }) => !isMainThread,
        () => false,
      ),
    );
    expect(offloader.stats()).toMatchObject({ done: 1 });
  });

  it('does not stop a boot that wants warm ones', async () => {
    const { reports, offloader } = await offloadApp({
      offload: { module: compiled('unbootable.module'), threads: 1, warm: 1 },
    });
    expect(offloader.stats()).toMatchObject({ done: 0, failed: 0, refused: 0 });
    await expect(reports.whereabouts()).rejects.toMatchObject({ code: 'PERF_ERR_OFFLOAD_DOWN' });
  });

  it('are as many as `warm` asks for, and no more than there may be', async () => {
    for (const [threads, warm] of [
      [1, 2],
      [3, 1],
    ] as const) {
      const { offloader } = await offloadApp({ offload: { threads, warm, maxPending: 0 } });
      expect(offloader.stats()).toMatchObject({ threads: 1, refused: 0 });
    }
  });
});

it('the program of a worker is no ES module: Node 20 and 22 abort where a thread is ended that requires one', () => {
  const required = `require(${JSON.stringify(fileURLToPath(PROGRAM))})`;
  const ran = spawnSync(process.execPath, ['--no-experimental-require-module', '-e', required], { encoding: 'utf8' });
  expect([ran.status, ran.stderr]).toEqual([0, '']);
});

it('a worker that takes longer to start than its first call may take is there for the next ones', async () => {
  const { reports, offloader } = await offloadApp({ offload: { module: compiled('slow.module'), threads: 1 } });
  const first = reports.short();
  await expect(first).rejects.toThrow(
    '"Reports.short" has not ended within `timeoutMs` (150): it was waiting for a worker',
  );
  await until('a call is answered', () =>
    reports.short().then(
      () => true,
      () => false,
    ),
  );
  expect(offloader.stats()).toMatchObject({ threads: 1, done: 1 });
});

it('what is called while the application is still made is refused, and does not run on the main thread', async () => {
  const useFactory = (offloader: Offloader) =>
    offloader.run(compiled('job'), { n: 1 }).catch(({ message }: Error) => message);
  const metadata = { providers: [{ provide: 'early', inject: [Offloader], useFactory }] };
  const { app, offloader, reports, lines } = await offloadApp({ metadata });
  expect(app.get('early')).toBe(
    'PERF_ERR_OFFLOAD_DOWN: "job.js" was refused: workers of offload() start with the application. Call it in `onModuleInit()` or later, not in a factory.',
  );
  expect(lines.filter((line) => line.includes('worker of offload()'))).toEqual([]);
  expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
  expect(offloader.stats()).toMatchObject({ done: 1 });
});

it('a method that no worker has fails its calls with the line to add', async () => {
  const { app } = await offloadApp({ metadata: { providers: [Missing] }, offload: { threads: 1, warm: true } });
  await expect(app.get(Missing).compute()).rejects.toThrow(
    'PERF_ERR_OFFLOAD: No worker has "Missing.compute". Add Missing to the providers of "OffloadModule", or keep class names',
  );
});

describe("a worker's own PerfModule", () => {
  it('measures nothing and starts no sink; its services can be injected', async () => {
    const { app } = await offloadApp({
      metadata: { providers: [Measured] },
      offload: { module: compiled('measured.module'), threads: 1 },
    });
    const seen = await app.get(Measured).look();
    expect(seen).toEqual({ started: 0, eventLoop: null, resources: null, routes: [], samples: true });
  });
});
