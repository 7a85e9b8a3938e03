import { afterEach, expect, it } from 'vitest';
import { closeOffloadApps, offloadApp } from '../../fixtures/offload/app.js';
import { randomOf } from '../../fixtures/random.js';
import { until } from '../../fixtures/until.js';

afterEach(closeOffloadApps);

/** Each that ends its worker costs half a second of CPU. */
const [CALLS, MAX_PENDING] = process.env['PERF_LONG'] === undefined ? [60, 25] : [120, 60];

it('answers each of many calls that work, fail, hang, end their worker or cannot be sent; then it works as before', async () => {
  const { reports, offloader } = await offloadApp({ offload: { threads: 2, maxPending: MAX_PENDING } });
  const kinds: (() => Promise<unknown>)[] = [
    ...Array.from({ length: 12 }, () => () => reports.spin(1)),
    () => reports.exit(1),
    () => reports.hang(),
    () => reports.fail('type'),
    () => reports.echo(() => {}),
    () => reports.throwLater(),
    () => reports.sleep(5),
    () => reports.giveFunction(),
  ];
  const random = randomOf(34);
  const calls = Array.from({ length: CALLS }, () => kinds[Math.floor(random() * kinds.length)]!());
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes).toHaveLength(CALLS);
  const { done, failed, timedOut, refused, running, pending } = offloader.stats();
  expect(done + failed + timedOut + refused).toBe(CALLS);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(done);
  expect(refused).toBeGreaterThan(20);
  expect({ running, pending }).toEqual({ running: 0, pending: 0 });
  expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
});

it('goes on after a worker that throws between two calls, and tells of it', async () => {
  const { reports, offloader, lines } = await offloadApp({ offload: { threads: 1 } });
  await reports.throwWhenIdle();
  await until('the worker has ended', () => offloader.stats().threads === 0);
  expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
  expect(lines).toContain(
    'a worker of offload() ended while it ran no call: thrown when nobody waits. The next call starts another one. ' +
      'Look for a timer or a listener in its module that throws, or for what ends the thread.',
  );
  expect(offloader.stats()).toMatchObject({ done: 2, failed: 0 });
});

it('closes while its first worker starts', async () => {
  const { app, reports, offloader } = await offloadApp({ offload: { threads: 1 }, perf: { flushTimeoutMs: 60_000 } });
  const call = reports.whereabouts();
  await app.close();
  expect(await call).toMatchObject({ secret: 42 });
  expect(offloader.stats()).toMatchObject({ threads: 0, running: 0, done: 1 });
});
