import { afterEach, expect, it } from 'vitest';
import { Deferrer } from '../../../../src/index.js';
import { closeOffloadApps, compiled, offloadApp } from '../../../fixtures/offload/app.js';
import { until } from '../../../fixtures/until.js';

afterEach(closeOffloadApps);

const shared = (words = 2): Int32Array => new Int32Array(new SharedArrayBuffer(words * 4));
const sent = (words: Int32Array): SharedArrayBuffer => words.buffer as SharedArrayBuffer;

it('lets calls end, runs the hooks of the workers, and leaves no thread', async () => {
  const { app, reports, offloader } = await offloadApp({ offload: { threads: 1 }, perf: { flushTimeoutMs: 60_000 } });
  const words = shared();
  await reports.writeOnShutdown(words.buffer as SharedArrayBuffer);
  await reports.beat(words.buffer as SharedArrayBuffer);
  await until('the worker counts', () => Atomics.load(words, 1) > 0);
  const running = reports.sleep(100);
  const waiting = reports.whereabouts();
  await app.close();
  expect(typeof (await running)).toBe('number');
  expect(await waiting).toMatchObject({ isMainThread: false });
  expect(Atomics.load(words, 0)).toBe(1);
  const counted = Atomics.load(words, 1);
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(Atomics.load(words, 1)).toBe(counted);
  expect(offloader.stats()).toMatchObject({ threads: 0, running: 0, pending: 0 });
  await expect(reports.whereabouts()).rejects.toThrow(
    'PERF_ERR_OFFLOAD_DOWN: "Reports.whereabouts" was refused: the application has closed.',
  );
  await expect(offloader.run(compiled('job'), { n: 1 })).rejects.toMatchObject({ code: 'PERF_ERR_OFFLOAD_DOWN' });
});

it('answers calls that do not end in time, and those that wait behind them', async () => {
  const { app, reports } = await offloadApp({ offload: { threads: 1 }, perf: { flushTimeoutMs: 200 } });
  await reports.whereabouts();
  const ended = Promise.allSettled([reports.sleep(60_000), reports.whereabouts()]);
  await app.close();
  expect(await ended).toMatchObject([
    { reason: { code: 'PERF_ERR_OFFLOAD', message: expect.stringContaining('ended while it ran "Reports.sleep"') } },
    {
      reason: {
        code: 'PERF_ERR_OFFLOAD',
        message: expect.stringContaining('was waiting for a worker when the application closed'),
      },
    },
  ]);
});

it('runs the hooks of the workers that are free while another one hangs', async () => {
  const { app, reports } = await offloadApp({ offload: { threads: 2 }, perf: { flushTimeoutMs: 2_000 } });
  const words = shared();
  const hangs = Promise.allSettled([reports.sleep(60_000)]);
  await reports.writeOnShutdown(words.buffer as SharedArrayBuffer);
  await app.close();
  expect(await hangs).toMatchObject([{ reason: { code: 'PERF_ERR_OFFLOAD' } }]);
  expect(Atomics.load(words, 0)).toBe(1);
});

it.each([0, 3])('closes the application of each worker once, busy or not (`warm: %i`)', async (warm) => {
  const { app, reports } = await offloadApp({ offload: { threads: 3, warm }, perf: { flushTimeoutMs: 60_000 } });
  const words = shared(4);
  await Promise.all([1, 2, 3].map(() => reports.countOnShutdown(sent(words), 3)));
  const closed = (): number[] => Array.from(words.subarray(1));
  const sum = (): number => closed().reduce((all, times) => all + times, 0);
  const held = [shared(), shared()];
  const running = held.map((signal) => reports.hold(sent(signal)));
  const closing = app.close();
  await until('the free one is closed', () => sum() === 1);
  for (const [i, signal] of held.entries()) {
    Atomics.store(signal, 0, 1);
    Atomics.notify(signal, 0);
    await running[i];
    await until('the next one is closed', () => sum() === i + 2);
  }
  await closing;
  expect(closed()).toEqual([1, 1, 1]);
});

it('serves deferred work that drains', async () => {
  const { app, reports } = await offloadApp({ offload: { threads: 1 }, perf: { flushTimeoutMs: 60_000 } });
  await reports.whereabouts();
  let ran: unknown = null;
  app.get(Deferrer).defer(async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    ran = await reports.whereabouts();
  });
  await app.close();
  expect(ran).toMatchObject({ isMainThread: false });
});
