import {
  Catch,
  Controller,
  Get,
  HttpException,
  Inject,
  type ArgumentsHost,
  type ExceptionFilter,
  UseFilters,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PerfError } from '../../../src/index.js';
import { closeOffloadApps, compiled, offloadApp } from '../../fixtures/offload/app.js';
import { Reports } from '../../fixtures/offload/reports.js';
import { until } from '../../fixtures/until.js';

afterEach(closeOffloadApps);

@Controller()
class BusyController {
  constructor(@Inject(Reports) private readonly reports: Reports) {}

  @Get('sleep')
  async sleep() {
    return { thread: await this.reports.sleep(100) };
  }

  @Get('hang')
  hang() {
    return this.reports.hang();
  }
}

/** As Nest's documentation has it: what is no `HttpException` is a defect of the application. */
@Catch()
class CatchEverythingFilter implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(thrown: unknown, context: ArgumentsHost): void {
    const status = thrown instanceof HttpException ? thrown.getStatus() : 500;
    const code = thrown instanceof PerfError ? thrown.code : null;
    this.host.httpAdapter.reply(context.switchToHttp().getResponse(), { code }, status);
  }
}

@Controller('caught')
@UseFilters(CatchEverythingFilter)
class CaughtController extends BusyController {}

const outcomes = async (calls: Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(calls)).map((each) =>
    each.status === 'fulfilled' ? 'done' : ((each.reason as { code?: string }).code ?? String(each.reason)),
  );
const count = <T>(values: readonly T[], value: T): number => values.filter((each) => each === value).length;

it('every request of a flood is answered: with 503 where it is full, and with 504 after the timeout, which filters can read', async () => {
  const metadata = { controllers: [BusyController, CaughtController] };
  const offload = { threads: 1, maxPending: 2 };
  const { url, offloader } = await offloadApp({ adapter: 'express', metadata, offload });
  const ask = (path: string, times: number) => Array.from({ length: times }, () => fetch(url + path));
  const flood = await Promise.all([...ask('/caught/sleep', 4), ...ask('/sleep', 16)]);
  const statuses = flood.map(({ status }) => status);
  expect([count(statuses, 200), count(statuses, 503)]).toEqual([3, 17]);
  expect(await flood[statuses.lastIndexOf(503)]!.json()).toMatchObject({ statusCode: 503 });
  // A limit is an `HttpException` and a `PerfError` to the filters of the application.
  const caught = await Promise.all(flood.slice(0, 4).map(async (answer) => [answer.status, await answer.json()]));
  expect(caught).toContainEqual([503, { code: 'PERF_ERR_OFFLOAD_FULL' }]);
  const late = await fetch(`${url}/caught/hang`);
  expect([late.status, await late.json()]).toEqual([504, { code: 'PERF_ERR_OFFLOAD_TIMEOUT' }]);
  expect((await fetch(`${url}/sleep`)).status).toBe(200);
  expect(offloader.stats()).toMatchObject({ done: 4, refused: 17, timedOut: 1, failed: 0, running: 0, pending: 0 });
});

describe('a pool', () => {
  it('starts no thread before the first call, then one for each call up to `threads`; the others wait in order', async () => {
    const { reports, offloader } = await offloadApp({ offload: { threads: 2 } });
    expect(offloader.stats()).toMatchObject({ threads: 0, running: 0, pending: 0, savedLoopMs: 0 });
    await Promise.all([reports.spin(1), reports.spin(1)]);
    expect(offloader.stats().threads).toBe(2);
    const ended: number[] = [];
    // One thread is held, so that the other's order is the order: of two, the machine may let either wait.
    const held = new Int32Array(new SharedArrayBuffer(4));
    const holding = reports.hold(held.buffer);
    const calls = [200, 20, 20, 20].map((ms, i) => reports.spin(ms).finally(() => ended.push(i)));
    expect(offloader.stats()).toMatchObject({ running: 2, pending: 3 });
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(ended).toEqual([0, 1, 2, 3]);
    Atomics.store(held, 0, 1);
    Atomics.notify(held, 0);
    await holding;
    const stats = offloader.stats();
    expect(stats).toMatchObject({ threads: 2, running: 0, pending: 0, done: 7 });
    expect(stats.runMs.p50).toBeGreaterThanOrEqual(19);
    expect(stats.waitMs.max).toBeGreaterThan(100);
    // 260 ms of a loop and as many again, less what little the arguments have cost.
    expect(stats.savedLoopMs).toBeGreaterThan(230);
    expect(stats.cloneMs.max).toBeGreaterThan(0);
  });

  it('ends what waits too long without a thread, and the thread of what runs too long', async () => {
    const { reports, offloader } = await offloadApp({ offload: { threads: 1 } });
    const first = await reports.spin(1);
    const late = await outcomes([reports.sleep(600), reports.short()]);
    expect(late).toEqual(['done', 'PERF_ERR_OFFLOAD_TIMEOUT']);
    await expect(reports.hang()).rejects.toThrow(
      'PERF_ERR_OFFLOAD_TIMEOUT: "Reports.hang" has not ended within `timeoutMs` (150), and its worker thread was ended.',
    );
    const replaced = await reports.spin(1);
    expect(replaced).not.toBe(first);
    expect(offloader.stats()).toMatchObject({ threads: 1, timedOut: 2, done: 3 });
  });

  it('keeps nothing of calls that no thread has had', async () => {
    const { reports, app, offloader } = await offloadApp({ offload: { threads: 1 }, perf: { flushTimeoutMs: 100 } });
    await reports.whereabouts();
    const closed = vi.spyOn(MessagePort.prototype, 'close');
    const held = outcomes([reports.sleep(60_000)]);
    await outcomes([reports.short(), reports.short()]);
    expect(closed).toHaveBeenCalledTimes(2);
    const waiting = outcomes([reports.whereabouts()]);
    expect(offloader.stats()).toMatchObject({ running: 1, pending: 1, timedOut: 2 });
    await app.close();
    expect(await waiting).toEqual(['PERF_ERR_OFFLOAD_DOWN']);
    expect(await held).toEqual(['PERF_ERR_OFFLOAD']);
    closed.mockRestore();
  });

  const outlived = 'exit, run out of memory, or throw where nobody catches: their calls fail, and no other';
  it(`outlives workers that ${outlived}`, { timeout: 180_000 }, async () => {
    const { reports, offloader } = await offloadApp({ offload: { threads: 2, heapLimitMb: 48 } });
    const ended = (call: Promise<unknown>) => call.catch((error: Error) => error.message);
    const steady = reports.sleep(400);
    expect(await ended(reports.exit(3))).toContain(
      'The worker ended while it ran "Reports.exit": worker exited with code: 3',
    );
    expect(await ended(reports.throwLater())).toMatch(/"Reports.throwLater": nobody catches this/);
    expect(await ended(reports.fillMemory())).toMatch(/"Reports.fillMemory": .*memory limit/);
    expect(typeof (await steady)).toBe('number');
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
    expect(offloader.stats()).toMatchObject({ failed: 3 });
  });

  it('starts `warm` threads with the application, and ends idle ones down to these', async () => {
    const { reports, offloader } = await offloadApp({ offload: { threads: 2, warm: 1, idleMs: 30 } });
    expect(offloader.stats()).toMatchObject({ threads: 1, done: 0, failed: 0 });
    const calls = Array.from({ length: 2 }, () => reports.sleep(50));
    await until('two threads', () => offloader.stats().threads === 2);
    await Promise.all(calls);
    await until('the idle one has ended', () => offloader.stats().threads === 1);
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: false });
  });

  it('serves two applications of a process apart', async () => {
    const [one, two] = [await offloadApp({ offload: { threads: 1 } }), await offloadApp({ offload: { threads: 1 } })];
    const [of, other] = await Promise.all([one.reports.spin(1), two.reports.spin(1)]);
    expect(of).not.toBe(other);
    await one.app.close();
    expect(await two.reports.spin(1)).toBe(other);
    expect(two.offloader.stats().done).toBe(2);
  });

  it('runs files with limits of their own', async () => {
    const { offloader } = await offloadApp({ offload: { threads: 1 } });
    const endless = offloader.run(compiled('endless'), {}, { timeoutMs: 300 });
    await expect(endless).rejects.toMatchObject({ code: 'PERF_ERR_OFFLOAD_TIMEOUT', statusCode: 504 });
    await expect(offloader.run(compiled('job'), 1, { timeout: 5 } as never)).rejects.toThrow(
      'PERF_ERR_OPTION: `Offloader.run(options).timeout` is not an option. Known options: ',
    );
  });
});
