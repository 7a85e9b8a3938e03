import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cleanups, cleanUp, limited } from '../../fixtures/resilience.js';
import { scriptedServer, type ScriptedServer } from '../../fixtures/scripted-server.js';
import { until } from '../../fixtures/until.js';

let server: ScriptedServer;
beforeEach(async () => {
  server = await scriptedServer();
  cleanups.push(server.close);
});
afterEach(cleanUp);
afterEach(() => vi.restoreAllMocks());

const asked = ({ signal }: { signal: AbortSignal }): Promise<Response> => fetch(server.url, { signal });
const idempotent = { idempotent: true };

describe('retries', () => {
  it('try a call again that is idempotent, after a broken connection and after 503, and no other call', async () => {
    const { api } = await limited({ breaker: false });
    server.script.push('break', 503);
    const attempts: number[] = [];
    const response = await api.call((call) => {
      attempts.push(call.attempt);
      return asked(call);
    }, idempotent);
    expect([response.status, ...attempts]).toEqual([200, 1, 2, 3]);
    expect(api.stats()).toMatchObject({ calls: 1, succeeded: 1, attempts: 3, retries: 2, failed: 0 });
    server.script.push(503);
    expect((await api.call(asked)).status).toBe(503);
    expect(server.received).toBe(4);
  });

  it('end with the last failure, and do not try what is an answer', async () => {
    const { api } = await limited({ retries: 1 });
    server.answer = 502;
    expect((await api.call(asked, idempotent)).status).toBe(502);
    server.answer = 404;
    expect((await api.call(asked, idempotent)).status).toBe(404);
    expect(server.received).toBe(3);
  });

  it('wait for as long as `Retry-After` says, and do not begin what cannot end in time', async () => {
    const { api } = await limited({ deadlineMs: 20_000, breaker: false });
    server.headers = { 'retry-after': '1' };
    server.script.push(429);
    const startedMs = performance.now();
    expect((await api.call(asked, idempotent)).status).toBe(200);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(995);
    server.headers = { 'retry-after': new Date(Date.now() + 60_000).toUTCString() };
    server.script.push(503);
    const againMs = performance.now();
    expect((await api.call(asked, idempotent)).status).toBe(503);
    expect(performance.now() - againMs).toBeLessThan(20_000);
  });

  it('that wait when the application closes end with the last failure, and none begins after that', async () => {
    const { api, close } = await limited({ deadlineMs: 120_000, breaker: false });
    let attempts = 0;
    const fail = () => {
      attempts += 1;
      return { status: 503, headers: { 'retry-after': '50' } };
    };
    const waiting = api.call(fail, idempotent);
    await new Promise((resolve) => setImmediate(resolve));
    await close();
    expect((await waiting).status).toBe(503);
    expect((await api.call(fail, idempotent)).status).toBe(503);
    expect([attempts, api.stats().inFlight]).toEqual([2, 0]);
  });

  it('keep no connection for an answer that is asked for again', async () => {
    let closed = 0;
    const errors = createServer((request, response) => {
      request.socket.once('close', () => (closed += 1));
      if (request.url === '/well') response.end('well');
      else response.writeHead(503).end(Buffer.alloc(16 * 1024 * 1024));
    });
    await new Promise<void>((resolve) => errors.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(errors.address() as AddressInfo).port}`;
    try {
      const { api } = await limited({ breaker: false });
      const path = ({ attempt }: { attempt: number }): string => (attempt === 3 ? '/well' : '/');
      const asks = (call: { attempt: number; signal: AbortSignal }): Promise<Response> =>
        fetch(url + path(call), { signal: call.signal });
      expect((await api.call(asks, idempotent)).status).toBe(200);
      await until('both to be let go', () => closed === 2);
    } finally {
      errors.closeAllConnections();
      errors.close();
    }
  });

  it('are at most a fifth of the calls', async () => {
    const { api } = await limited({ breaker: false });
    server.answer = 500;
    await Promise.all(Array.from({ length: 200 }, () => api.call(asked, idempotent)));
    expect(server.received).toBeLessThanOrEqual(240);
    expect(api.stats()).toMatchObject({ calls: 200, failed: 200, retries: server.received - 200 });
    expect(api.stats().retriesDenied).toBeGreaterThan(0);
  });
});

describe('the breaker', () => {
  it('opens at the share of failures, and refuses', async () => {
    const { api } = await limited({ breaker: { atLeast: 4, ratio: 0.5, openMs: 60_000 }, retries: 0 });
    for (const answer of [200, 200, 500] as const) {
      server.answer = answer;
      await api.call(asked);
    }
    expect(api.state).toBe('closed');
    await api.call(asked);
    expect(api.state).toBe('open');
    await expect(api.call(asked)).rejects.toMatchObject({ code: 'PERF_ERR_OPEN', retryAfterSeconds: 60 });
    expect(server.received).toBe(4);
    expect(api.stats()).toMatchObject({ opened: 1, refusedOpen: 1, calls: 5, succeeded: 2, failed: 2 });
    const openedMs = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(openedMs + 45_000);
    // Somebody sets the machine's clock back by an hour.
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
    await expect(api.call(asked)).rejects.toMatchObject({
      retryAfterSeconds: 15,
      message: expect.stringMatching(/, it is tried again in 1[45]\d{3} ms\./),
    });
  });

  it('forgets a window without calls', async () => {
    const breaker = { atLeast: 4, windowMs: 200, openMs: 60_000 };
    const { api } = await limited({ breaker, retries: 0 });
    server.answer = 500;
    for (let i = 0; i < 3; i++) await api.call(asked);
    const sinceAt = Date.now();
    await until('the window is over', () => Date.now() - sinceAt > 250);
    await api.call(asked);
    expect(api.state).toBe('closed');
  });

  it('opens not before there are enough calls, nor below the share', async () => {
    const { api } = await limited({ breaker: { atLeast: 4, ratio: 0.5, openMs: 60_000 }, retries: 0 });
    for (const answer of [500, 500, 500, 200, 200, 200, 200] as const) {
      server.answer = answer;
      await api.call(asked);
      expect(api.state).toBe('closed');
    }
    server.answer = 500;
    await api.call(asked);
    expect(api.state).toBe('open');
  });

  it('tries with some calls, and closes when all of them succeed', async () => {
    const { api } = await limited({ breaker: { atLeast: 1, openMs: 100, probes: 2 }, retries: 0 });
    server.answer = 500;
    await api.call(asked);
    await until('it may be tried', () => api.state === 'half-open');
    server.answer = 200;
    await api.call(asked);
    expect(api.state).toBe('half-open');
    await api.call(asked);
    expect(api.state).toBe('closed');
    expect(api.stats()).toMatchObject({ opened: 1, succeeded: 2, failed: 1 });
  });

  it('lets no more calls through than it tries with, and opens again when one of them fails', async () => {
    const { api } = await limited({ breaker: { atLeast: 1, openMs: 100, probes: 3 }, retries: 0 });
    server.answer = 500;
    await api.call(asked);
    await until('it may be tried', () => api.state === 'half-open');
    const ended = await Promise.allSettled(Array.from({ length: 20 }, () => api.call(asked)));
    expect(ended.filter(({ status }) => status === 'rejected')).toHaveLength(17);
    expect(server.received).toBe(4);
    expect(api.stats().opened).toBe(2);
  });

  it('that tries without an answer is open again at the deadline of the call', async () => {
    const { api } = await limited({ deadlineMs: 80, breaker: { atLeast: 1, openMs: 100, probes: 1 } });
    server.answer = 'never';
    const opens = (times: number): Promise<void> =>
      until(`it opens ${times} times`, async () => {
        await expect(api.call(asked)).rejects.toMatchObject({
          code: expect.stringMatching(/PERF_ERR_(DEADLINE|OPEN)/),
        });
        return api.stats().opened === times;
      });
    await opens(1);
    await until('it may be tried', () => api.state === 'half-open');
    await opens(2);
  });

  it('is told nothing by calls from before it opened: they end late, and badly', async () => {
    const { api } = await limited({ breaker: { atLeast: 2, openMs: 100, probes: 2 }, retries: 0 });
    const breaks: (() => void)[] = [];
    const hang = (): Promise<never> => new Promise((_, reject) => breaks.push(() => reject(new Error('reset'))));
    const endLate = async (): Promise<unknown> => {
      breaks.pop()!();
      return Promise.race(hanging);
    };
    const hanging = Array.from({ length: 6 }, () => api.call(hang).catch(() => {}));
    server.answer = 500;
    for (let i = 0; i < 2; i++) await api.call(asked);
    await until('it may be tried', () => api.state === 'half-open');
    server.answer = 200;
    await api.call(asked);
    await endLate();
    expect(api.state).toBe('half-open');
    await api.call(asked);
    expect(api.state).toBe('closed');
    while (breaks.length > 0) await endLate();
    await Promise.all(hanging);
    expect(api.state).toBe('closed');
    expect(api.stats()).toMatchObject({ opened: 1, succeeded: 2, failed: 8 });
  });

  it('is not opened by 4xx, nor by the application that aborts its own calls', async () => {
    const { api } = await limited({ breaker: { atLeast: 1 } });
    server.answer = 404;
    await api.call(asked);
    server.answer = 'never';
    const leaving = new AbortController();
    const left = api.call(() => fetch(server.url, { signal: leaving.signal })).catch((error: Error) => error.name);
    await until('it is asked', () => server.received === 2);
    leaving.abort();
    expect(await left).toBe('AbortError');
    expect(api.state).toBe('closed');
  });
});
