import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  Controller,
  Get,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PerfService, type RequestRecord } from '../../src/index.js';
import { adapters, byTurns, startApp, type TestApp } from '../fixtures/app.js';
import { gate } from '../fixtures/cached-data.js';
import { undici, type UndiciPool } from '../fixtures/clients.js';

let pool: UndiciPool;
/** The only connection is busy until it is opened. */
let answer = gate();
/** What the test knows to have happened. */
let asked = gate();
let queued = 0;
/** The route that opens the connection stays in flight until it is opened. */
let leave = gate();

const call = async (path = '/', by = pool): Promise<void> => {
  const { body } = await by.request({ path, method: 'GET' });
  await body.text();
};

/** From where a request makes its second call, which is no promise's job. */
const places: Record<string, () => Promise<void>> = {
  'process.nextTick()': async () => {
    await call();
    await new Promise<void>((resolve) => process.nextTick(() => resolve(call())));
  },
  'setTimeout()': async () => {
    await call();
    await new Promise<void>((resolve) => setTimeout(() => resolve(call()), 1));
  },
  "undici's retry interceptor": () => call('/flaky', retrying()),
};
/** The same, where undici sends what others wait for, too. */
const shared: Record<string, () => Promise<void>> = {
  'setImmediate()': async () => {
    await call();
    await new Promise<void>((resolve) => setImmediate(() => resolve(call())));
  },
  'queueMicrotask()': async () => {
    await call();
    await new Promise<void>((resolve) => queueMicrotask(() => resolve(call())));
  },
  "undici's redirect interceptor": () =>
    call('/moved', pool.compose(undici.interceptors.redirect({ maxRedirections: 1 }))),
};
const retrying = (): UndiciPool => pool.compose(undici.interceptors.retry({ minTimeout: 1 }));
let place = '';
/** How the upstream answers, by path, the first time. */
const firstAnswers: Record<string, number> = { '/flaky': 503, '/moved': 302 };
let answered = new Set<string>();
let closing = false;

/** Nest runs what stands behind an interceptor as a bound function. */
class AsIs implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle();
  }
}

@Controller()
class PoolController {
  @Get('warm')
  async warm() {
    await call();
    return {};
  }

  @Get('first')
  async first() {
    const called = call();
    asked.open();
    await called;
    await leave.passed;
    return {};
  }

  @Get('both')
  @UseInterceptors(AsIs)
  async both() {
    await Promise.all([call(), call(), call()]);
    return {};
  }

  @Get('again')
  async again() {
    await { ...places, ...shared }[place]!();
    return {};
  }

  @Get('retried')
  async retried() {
    await call('/flaky', retrying());
    return {};
  }

  @Get('second')
  async second() {
    const called = call();
    queued += 1;
    if (queued === 3) answer.open();
    await called;
    return {};
  }
}

describe.each(adapters)('a queue for the connections of undici, on %s', (adapter) => {
  let upstream: Server;
  let running: TestApp;
  beforeEach(async () => {
    [answer, asked, leave] = [gate(), gate(), gate()];
    queued = 0;
    answered = new Set();
    closing = false;
    upstream = createServer(({ url, headers: { host } }, response) => {
      response.statusCode = (!answered.has(url!) && firstAnswers[url!]) || 200;
      answered.add(url!);
      if (url === '/moved') response.setHeader('location', `http://${host}/`);
      if (closing) response.setHeader('connection', 'close');
      void answer.passed.then(() => response.end('{}'));
    });
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    pool = poolOf(1);
    running = await startApp(adapter, { metadata: { controllers: [PoolController] } });
  });
  afterEach(async () => {
    await running.close();
    await pool.close();
    upstream.close();
  });
  const poolOf = (connections: number, pipelining = 1): UndiciPool =>
    new undici.Pool(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`, { connections, pipelining });
  const ask = async (path: string): Promise<void> => void (await (await fetch(`${running.url}/${path}`)).text());
  const callsOf = ({ upstream: uses }: RequestRecord): number => uses!.reduce((sum, { calls }) => sum + calls, 0);
  const poolCalls = (): number | undefined => {
    const { port } = upstream.address() as AddressInfo;
    const rows = running.app.get(PerfService).snapshot().upstream;
    return rows.find(({ target }) => target === `http 127.0.0.1:${port}`)?.calls;
  };

  it('gives none of the calls in it to the request that opened the connection', async () => {
    const first = ask('first');
    await asked.passed;
    await Promise.all([ask('second'), ask('second'), ask('second')]);
    leave.open();
    await first;
    const records = await running.requests();
    expect(records.map((record) => [record.route, callsOf(record)])).toEqual([
      ['/first', 1],
      ['/second', 0],
      ['/second', 0],
      ['/second', 0],
    ]);
    expect(records[0]!.time!.unplacedCalls).toBeGreaterThanOrEqual(3);
    expect(poolCalls()).toBe(4);
  });

  it.each([
    ['that the upstream closes after each answer', 1, true],
    ['that takes several calls at a time', 2, false],
  ])('gives none of them to who opened a connection %s', async (_, pipelining, closes) => {
    closing = closes;
    await pool.close();
    pool = poolOf(1, pipelining);
    const first = ask('first');
    await asked.passed;
    await Promise.all([ask('second'), ask('second'), ask('second')]);
    leave.open();
    await first;
    const opener = (await running.requests()).find(({ route }) => route === '/first')!;
    expect(callsOf(opener)).toBe(1);
    expect(opener.time!.unplacedCalls).toBeGreaterThanOrEqual(4 - pipelining);
    expect(poolCalls()).toBe(4);
  });

  it.each(byTurns(adapter, Object.keys(places)))('is none for the second call of its opener, from %s', async (name) => {
    answer.open();
    place = name;
    await pool.close();
    pool = poolOf(2);
    await ask('again');
    const [record] = await running.requests();
    expect(callsOf(record!)).toBe(2);
    expect(record!.time!.unplacedCalls).toBe(0);
  });

  it.each(byTurns(adapter, Object.keys(shared)))('may hold the second call of its opener, from %s', async (name) => {
    answer.open();
    place = name;
    await pool.close();
    pool = poolOf(2);
    await ask('again');
    const [record] = await running.requests();
    expect(callsOf(record!)).toBe(1);
    expect(record!.time!.unplacedCalls).toBe(1);
  });

  it('gives what is sent again for another request to nobody', async () => {
    answer.open();
    const first = ask('first');
    await asked.passed;
    await ask('retried');
    leave.open();
    await first;
    const opener = (await running.requests()).find(({ route }) => route === '/first')!;
    expect(callsOf(opener)).toBe(1);
    expect(opener.time!.unplacedCalls).toBeGreaterThanOrEqual(1);
  });

  it('counts them as unplaced when that request has ended', async () => {
    answer.open();
    await ask('warm');
    answer = gate();
    await Promise.all([ask('second'), ask('second'), ask('second')]);
    const records = (await running.requests()).filter(({ route }) => route === '/second');
    expect(records.map(callsOf).toSorted((a, b) => a - b)).toEqual([0, 0, 1]);
    for (const record of records) expect(callsOf(record) + record.time!.unplacedCalls).toBeGreaterThanOrEqual(1);
    expect(poolCalls()).toBe(4);
  });

  it('is none where a request opens the connections for all that it asks at once, behind an interceptor', async () => {
    answer.open();
    await pool.close();
    pool = poolOf(3);
    await ask('both');
    await ask('both');
    const records = await running.requests();
    expect(records.map(callsOf)).toEqual([3, 3]);
    expect(records.map(({ time }) => time!.unplacedCalls)).toEqual([0, 0]);
  });
});
