import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Offloader } from '../../../src/entries/offload.js';
import { closeOffloadApps, compiled, offloadApp, PROGRAM } from '../../fixtures/offload/app.js';
import { until } from '../../fixtures/until.js';
import { m, Measured, Missing } from '../../fixtures/offload/modules.js';

afterEach(closeOffloadApps);

const NOT_THE_SERVER =
  '`module` of offload() is a file of its own with what the workers need, not the file that starts the application.';

let folder: string | null = null;
afterEach(() => {
  if (folder !== null) rmSync(folder, { recursive: true });
  folder = null;
  delete process.env['OFFLOAD_FAILED_ONCE'];
});
function failingOnce() {
  folder = mkdtempSync(join(tmpdir(), 'offload-'));
  process.env['OFFLOAD_FAILED_ONCE'] = join(folder, 'failed');
  return offloadApp({ offload: { module: compiled('failing-once.module'), threads: 1 } });
}

// One after the other starts.
describe('workers that do not start', { timeout: 180_000 }, () => {
  it.each<[string, string, string]>([
    ['ends its process', 'exiting.module', 'worker exited with code: 7'],
    ['throws', 'throwing.module', 'the configuration is missing'],
    ['listens', 'listening.module', 'A worker of offload() must not listen'],
    [
      'is the one that starts the application',
      'main',
      `must export one module class, or one as its default export; it has none. ${NOT_THE_SERVER}`,
    ],
  ])('leave calls on the main thread, counted and said, when the module %s', async (_what, file, why) => {
    const { reports, offloader, lines } = await offloadApp({ offload: { module: compiled(file), threads: 1 } });
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: true, secret: 42 });
    expect(await reports.invert(Uint8Array.of(1))).toEqual(Uint8Array.of(254));
    await expect(reports.fail('stock')).rejects.toThrow('out of stock');
    expect(offloader.stats()).toMatchObject({ threads: 0, done: 2, failed: 1, inline: 3, methods: [] });
    const said = lines.filter((line) => line.startsWith('3 workers of offload() have ended before they could work: '));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(why);
    expect(said[0]).toContain(
      'Calls run on the main thread, where they block the event loop; the next try is in a minute.',
    );
  });

  it('are tried again at once, and the next answers its call, once', async () => {
    const { reports, offloader } = await failingOnce();
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
    expect(offloader.stats()).toMatchObject({ done: 1, failed: 0, inline: 0 });
  });

  it('fail a call whose arguments have become such that they cannot be sent again, and go on', async () => {
    const { reports, offloader } = await failingOnce();
    const bytes = new Uint8Array(8);
    const call = reports.invert(bytes);
    const next = reports.whereabouts();
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    await expect(call).rejects.toThrow('PERF_ERR_SERIALIZE');
    expect(await next).toMatchObject({ isMainThread: false });
    expect(offloader.stats()).toMatchObject({ done: 1, failed: 1, running: 0, pending: 0 });
  });

  it('are no more than there may be, whatever `warm` asks for', async () => {
    const { offloader } = await offloadApp({ offload: { threads: 1, warm: 2, maxPending: 0 } });
    expect(offloader.stats()).toMatchObject({ threads: 1, refused: 0 });
  });

  it('are tried again after a minute', async () => {
    const { reports, offloader } = await offloadApp({
      offload: { module: compiled('throwing.module'), threads: 1, warm: 1 },
    });
    expect(offloader.stats()).toMatchObject({ done: 0, failed: 0, inline: 0 });
    const before = reports.whereabouts();
    expect(offloader.stats()).toMatchObject({ running: 0, inline: 1 });
    expect(await before).toMatchObject({ isMainThread: true });
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now + 61_000);
    try {
      const call = reports.whereabouts();
      expect(offloader.stats().running).toBe(1);
      expect(await call).toMatchObject({ isMainThread: true });
    } finally {
      clock.mockRestore();
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
  expect(offloader.stats()).toMatchObject({ threads: 1, done: 1, inline: 0 });
});

it('what is called while the application is still made runs on the main thread', async () => {
  const useFactory = (offloader: Offloader) =>
    Promise.all([1, 2].map((n) => offloader.run<{ squared: number }>(compiled('job'), { n })));
  const metadata = { providers: [{ provide: 'early', inject: [Offloader], useFactory }] };
  const { app, offloader, reports, lines } = await offloadApp({ metadata });
  expect(app.get('early')).toEqual([
    { isMainThread: true, squared: 1 },
    { isMainThread: true, squared: 4 },
  ]);
  expect(lines.filter((line) => line.includes('workers of offload()'))).toEqual([]);
  expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
  expect(offloader.stats()).toMatchObject({ done: 3, inline: 2 });
});

describe('a method that no worker has', () => {
  const metadata = { providers: [Missing] };

  it('stops the boot of an application with a `warm` worker, and fails its calls in another', async () => {
    await expect(offloadApp({ metadata, offload: { threads: 1, warm: true } })).rejects.toThrow(
      /^PERF_ERR_DECORATOR: `@Offload\(\)` on "Missing\.compute": no worker has it\. Add Missing to the providers of file:.*offload\.module\.js\.$/,
    );
    const { app } = await offloadApp({ metadata, offload: { threads: 1 } });
    await expect(app.get(Missing).compute()).rejects.toThrow(
      'PERF_ERR_OFFLOAD: No worker has "Missing.compute". Add Missing to what "OffloadModule" provides or imports, or keep class names',
    );
  });
});

it('starts no worker where a minifier has named a class: in the bundle of the module another one may have its name', async () => {
  const { app, lines } = await offloadApp({ metadata: { providers: [m] } });
  expect(lines.filter((line) => line.includes('offload()'))).toEqual([
    expect.stringMatching(/starts no worker: a minifier has named the class of "m\.isHere"\. Keep class names/),
  ]);
  expect(await app.get(m).isHere()).toBe(true);
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
