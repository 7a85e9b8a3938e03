import { afterEach, expect, it } from 'vitest';
import { Deferrer } from '../../../../src/index.js';
import { closeOffloadApps, compiled, offloadApp } from '../../../fixtures/offload/app.js';
import { until } from '../../../fixtures/until.js';

afterEach(closeOffloadApps);

it('lets calls end, and leaves no thread', async () => {
  const { app, reports, offloader } = await offloadApp({ offload: { threads: 1 }, perf: { flushTimeoutMs: 60_000 } });
  const words = new Int32Array(new SharedArrayBuffer(4));
  await reports.beat(words.buffer);
  await until('the worker counts', () => Atomics.load(words, 0) > 0);
  const running = reports.sleep(100);
  const waiting = reports.whereabouts();
  await app.close();
  expect(typeof (await running)).toBe('number');
  expect(await waiting).toMatchObject({ isMainThread: false });
  const counted = Atomics.load(words, 0);
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(Atomics.load(words, 0)).toBe(counted);
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
        code: 'PERF_ERR_OFFLOAD_DOWN',
        message: expect.stringContaining('"Reports.whereabouts" was refused: the application has closed'),
      },
    },
  ]);
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
