import { Catch, Controller, Get, Inject, HttpException, UseFilters, type ArgumentsHost } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { PerfService } from '../../../../src/index.js';
import { either } from '../../../fixtures/app.js';
import { closeOffloadApps, compiled, offloadApp, type OffloadApp } from '../../../fixtures/offload/app.js';
import { Reports } from '../../../fixtures/offload/reports.js';

afterEach(closeOffloadApps);

@Catch(HttpException)
class NotFoundFilter {
  catch(error: HttpException, host: ArgumentsHost): void {
    type Reply = { status(code: number): { send(body: object): void } };
    host.switchToHttp().getResponse<Reply>().status(error.getStatus()).send({ missing: error.message });
  }
}

@Controller()
@UseFilters(NotFoundFilter)
class ReportsController {
  constructor(@Inject(Reports) private readonly reports: Reports) {}

  @Get('conflict')
  conflict() {
    return this.reports.fail('conflict');
  }

  @Get('unknown')
  unknown() {
    return this.reports.fail('unknown');
  }

  @Get('stock')
  stock() {
    return this.reports.fail('stock');
  }
}

describe('an offloaded method', () => {
  let shared: OffloadApp;
  beforeAll(async () => {
    shared = await offloadApp({ offload: { threads: 1 }, keep: true });
  });
  afterAll(() => shared.app.close());

  it('runs in a worker with what is injected there, also when the class calls itself; in the worker it runs directly', async () => {
    const { reports } = shared;
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: false, secret: 42 });
    expect(await reports.ask()).toBe(false);
    expect(await reports.inherited()).toBe(false);
    const { outer, inner } = await reports.askFromWorker();
    expect(inner).toBe(outer);
  });

  it('is one whatever other decorators put in its place, and none where it is overridden', async () => {
    const { reports } = shared;
    expect([await reports.wrapped(), await reports.overridden()]).toEqual([false, true]);
    expect(await reports.bound()).toEqual({ isMainThread: false, secret: 42 });
  });

  it('runs with the override that calls it, and is refused to one that is not decorated', async () => {
    const { reports } = shared;
    expect(await reports.extendedAgain(false)).toBe('override of base in worker');
    expect(await reports.extendedAgain(true)).toBe('override of base in main');
    await expect(reports.extended()).rejects.toMatchObject({
      code: 'PERF_ERR_DECORATOR',
      message: expect.stringContaining('`@Offload()` on "Base.extended": an override calls it through `super`'),
    });
  });

  it('gets what structured clone makes of its arguments as they are at the call', async () => {
    const { reports } = shared;
    const rows = [{ id: 1 }];
    const echoed = reports.echo(rows, new Map([['a', new Date(5)]]), undefined, 7n);
    rows[0]!.id = 2;
    expect(await echoed).toEqual([[{ id: 1 }], new Map([['a', new Date(5)]]), undefined, 7n]);
  });

  it('is timed right where the machine has corrected its clock since the process began', async () => {
    const { reports, offloader } = shared;
    await reports.whereabouts();
    const before = offloader.stats().waitMs.max;
    vi.spyOn(performance, 'timeOrigin', 'get').mockReturnValue(performance.timeOrigin - 3_600_000);
    try {
      await reports.whereabouts();
      expect(offloader.stats().waitMs.max).toBeLessThan(before + 60_000);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it('moves buffers with `transfer`, and stays on the main thread where `when` says so', async () => {
    const { reports } = shared;
    await reports.whereabouts();
    const bytes = new Uint8Array(100_000).fill(1);
    const inverted = await reports.invert(bytes);
    expect(inverted[99_999]).toBe(254);
    expect(bytes.byteLength).toBe(0);
    // A view of Node's pool of small buffers belongs to others as well.
    const small = Buffer.from('abc');
    expect((await reports.invert(small))[0]).toBe(255 - 97);
    expect(small.toString()).toBe('abc');
    expect([await reports.large(3), await reports.large(11)]).toEqual([true, false]);
  });

  const throwing = (what: unknown): object =>
    Object.defineProperty({}, 'x', {
      get: () => {
        throw what;
      },
      enumerable: true,
    });
  it.each<[string, unknown[], string]>([
    ['a function', [1, { rows: [{ save: () => {} }] }], 'Argument 2 of "Reports.echo" cannot go to another thread'],
    [
      'a promise',
      [Promise.resolve()],
      'Argument 1 of "Reports.echo" cannot go to another thread: #<Promise> could not be cloned. Pass plain data',
    ],
    [
      'a getter that throws',
      [throwing(new Error('no'))],
      'Argument 1 of "Reports.echo" cannot go to another thread: no.',
    ],
    [
      'a getter that throws nothing',
      [throwing(null)],
      'Argument 1 of "Reports.echo" cannot go to another thread: null.',
    ],
  ])('refuses %s as an argument, and says which', async (_what, values, message) => {
    const refused = shared.reports.echo(...values);
    await expect(refused).rejects.toMatchObject({
      code: 'PERF_ERR_SERIALIZE',
      message: expect.stringContaining(message),
    });
    expect(shared.offloader.stats()).toMatchObject({ running: 0, pending: 0 });
  });

  it('says that a result cannot be sent back', async () => {
    const { reports } = shared;
    await expect(reports.giveFunction()).rejects.toThrow(
      'PERF_ERR_SERIALIZE: The result of "Reports.giveFunction" cannot go to another thread',
    );
  });

  it('says that a result which is kept was moved with an earlier one', async () => {
    const { reports } = shared;
    expect(await reports.keep()).toEqual({ bytes: Uint8Array.of(1, 2) });
    await expect(reports.keep()).rejects.toThrow('The result of "Reports.keep" cannot go to another thread');
  });

  it('throws errors that keep name, message, stack, code and status; an `HttpException` keeps its response', async () => {
    const { reports } = shared;
    const conflict = await reports.fail('conflict').catch((error: unknown) => error as HttpException);
    expect(conflict).toBeInstanceOf(HttpException);
    expect([conflict.name, conflict.getStatus()]).toEqual(['ConflictException', 409]);
    expect(conflict.getResponse()).toEqual({ message: 'taken', seat: '4A' });
    expect(conflict.stack).toMatch(/Reports\.fail .*reports/);
    const stock = await reports.fail('stock').catch((error: unknown) => error as Error);
    expect(stock).toBeInstanceOf(Error);
    expect(stock).toMatchObject({ name: 'StockError', message: 'out of stock', statusCode: 422, code: 'E_STOCK' });
    await expect(reports.fail('type')).rejects.toMatchObject({ name: 'TypeError', message: 'no number' });
    await expect(reports.fail('text')).rejects.toThrow('Not an error was thrown: only a text');
  });

  it('runs a file without any application', async () => {
    const { offloader } = await offloadApp({ offload: { module: compiled('unbootable.module') } });
    expect(await offloader.run(compiled('job'), { n: 7 })).toEqual({ isMainThread: false, squared: 49 });
    await expect(offloader.run(compiled('offload.module'), 1)).rejects.toThrow(
      /The default export of .* must be a function/,
    );
    await expect(offloader.run('job.js', 1)).rejects.toThrow(
      'PERF_ERR_OPTION: `Offloader.run(file)` must be a file URL or an absolute path, got `"job.js"` (string).',
    );
  });
});

it('a file runs here with `inline: true`; one with top-level `await` runs in a worker alone', async () => {
  const { offloader } = await offloadApp({ offload: { threads: 1 } });
  expect(await offloader.run(compiled('awaiting'), 4)).toEqual({ isMainThread: false, product: 8 });
  const inline = await offloadApp({ offload: { inline: true } });
  expect(await inline.offloader.run(compiled('job'), { n: 7 })).toEqual({ isMainThread: true, squared: 49 });
});

describe.each(either('express'))('from a request, on %s', (adapter) => {
  it('errors are answered by their filter, or their status', async () => {
    const metadata = { controllers: [ReportsController] };
    const { url, app } = await offloadApp({ adapter, metadata });
    const conflict = await fetch(`${url}/conflict`);
    expect([conflict.status, await conflict.json()]).toEqual([409, { missing: 'taken' }]);
    const unknown = await fetch(`${url}/unknown`);
    expect([unknown.status, await unknown.json()]).toEqual([404, { missing: 'no user' }]);
    expect((await fetch(`${url}/stock`)).status).toBe(422);
    const { offload, upstream } = app.get(PerfService).snapshot();
    expect(offload).toMatchObject({ done: 0, failed: 3, threads: 1 });
    expect(upstream.map(({ target, calls }) => [target, calls])).toContainEqual(['worker Reports.fail', 3]);
  });
});
