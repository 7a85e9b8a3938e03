import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ResilienceError, Upstream, type ResilientUpstream } from '../../../src/entries/resilience.js';
import { PerfError, PerfService } from '../../../src/index.js';
import { either } from '../../fixtures/app.js';
import { cleanups, cleanUp, limited } from '../../fixtures/resilience.js';
import { scriptedServer, type ScriptedServer } from '../../fixtures/scripted-server.js';

let server: ScriptedServer;
beforeEach(async () => {
  server = await scriptedServer();
  cleanups.push(server.close);
});
afterEach(cleanUp);

@Injectable()
class Client {
  constructor(@Upstream('api') readonly api: ResilientUpstream) {}
}

@Controller()
class ClientController {
  constructor(@Inject(Client) private readonly client: Client) {}
  @Get('call')
  async call() {
    const response = await this.client.api.call(({ signal }) => fetch(server.url, { signal }));
    return { status: response.status };
  }

  /** What goes on in the request's context when it is over. */
  afterwards: Promise<number> | null = null;
  @Get('start')
  start() {
    this.afterwards = delay(150).then(() => this.client.api.call(() => 1));
    return {};
  }
}

const metadata = { controllers: [ClientController], providers: [Client] };
const asked = ({ signal }: { signal: AbortSignal }): Promise<Response> => fetch(server.url, { signal });
const errorOf = (promise: Promise<unknown>): Promise<ResilienceError> =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error as ResilienceError,
  );

describe.each(either('express'))('a call in a request, on %s', (adapter) => {
  it('answers 504 when the upstream has not answered in time', async () => {
    const { url } = await limited({ deadlineMs: 50 }, { adapter, metadata });
    server.answer = 'never';
    const response = await fetch(`${url}/call`);
    expect(response.status).toBe(504);
    expect(await response.json()).toEqual({
      statusCode: 504,
      error: 'Gateway Timeout',
      message: 'A service that this answer needs did not answer in time.',
    });
  });

  it('answers 503 while the breaker is open, and when too many calls are under way', async () => {
    const breaker = { atLeast: 2, openMs: 4_200 };
    const { url, api } = await limited(
      { deadlineMs: 10_000, breaker, maxInFlight: 1, retries: 0 },
      { adapter, metadata },
    );
    server.answer = 'never';
    const held = api.call(asked).catch(() => {});
    const busy = await fetch(`${url}/call`);
    expect(busy.status).toBe(503);
    server.answer = 'break';
    server.breakHeld();
    await held;
    await fetch(`${url}/call`);
    const open = await fetch(`${url}/call`);
    expect(open.status).toBe(503);
    expect(await open.json()).toMatchObject({ statusCode: 503, error: 'Service Unavailable' });
    expect(api.state).toBe('open');
  });
});

describe('a call with limits', () => {
  it('gives the result, and tells its work the attempt and what is left', async () => {
    const { api } = await limited();
    const told: unknown[] = [];
    const answer = await api.call(async ({ attempt, remainingMs, signal }) => {
      told.push(attempt, remainingMs > 1_000 && remainingMs <= 60_000, signal.aborted);
      return 'answer';
    });
    expect([answer, ...told]).toEqual(['answer', 1, true, false]);
    expect(api.stats()).toMatchObject({
      state: 'closed',
      inFlight: 0,
      calls: 1,
      succeeded: 1,
      attempts: 1,
      failed: 0,
    });
  });

  it('at its deadline aborts its signal, and says how long it took in an error that is PerfError and HttpException', async () => {
    const { api } = await limited({ deadlineMs: 200 });
    let signal!: AbortSignal;
    const startedMs = performance.now();
    const error = await errorOf(
      api.call((call) => {
        ({ signal } = call);
        return new Promise(() => {});
      }),
    );
    const tookMs = performance.now() - startedMs;
    expect(error).toBeInstanceOf(PerfError);
    expect(error).toBeInstanceOf(ResilienceError);
    expect(error).toMatchObject({ code: 'PERF_ERR_DEADLINE', upstream: 'api', attempt: 1 });
    expect(error.getStatus()).toBe(504);
    expect(error.message).toContain('PERF_ERR_DEADLINE: upstream "api" has not answered within 200 ms.');
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe(error);
    expect(tookMs).toBeGreaterThanOrEqual(199);
    const { failed, ownDeadlines, inFlight } = api.stats();
    expect([failed + ownDeadlines, inFlight]).toEqual([1, 0]);
  });

  it('throws what its work throws, and returns a result that is a failure', async () => {
    const { api } = await limited();
    await expect(
      api.call(() => {
        throw new Error('at once');
      }),
    ).rejects.toThrow('at once');
    server.answer = 503;
    expect((await api.call(asked)).status).toBe(503);
    expect(api.stats()).toMatchObject({ calls: 2, failed: 2, retries: 0 });
  });

  it('stands in the snapshot by upstream', async () => {
    const { api, app } = await limited();
    await api.call(() => 1);
    expect(app.get(PerfService).snapshot().resilience).toEqual({ api: api.stats() });
  });

  it('has no more time than its request', async () => {
    server.answer = 'never';
    const { url, api } = await limited({ deadlineMs: 30_000 }, { metadata, requestDeadlineMs: 80 });
    expect((await fetch(`${url}/call`)).status).toBe(504);
    // The upstream was not given its time: that is not its failure.
    expect(api.stats()).toMatchObject({ failed: 0, ownDeadlines: 1 });
  });

  it('that a request has left behind has its own time', async () => {
    const around = { metadata, requestDeadlineMs: 80 };
    const { app, url } = await limited({ deadlineMs: 30_000 }, around);
    await (await fetch(`${url}/start`)).text();
    expect(await app.get(ClientController).afterwards).toBe(1);
  });

  it('of two applications knows nothing of the other', async () => {
    const [one, other] = [await limited({ breaker: { atLeast: 1 }, retries: 0 }), await limited()];
    server.answer = 500;
    await one.api.call(asked);
    expect([one.api.state, other.api.state]).toEqual(['open', 'closed']);
    expect(other.api.stats().calls).toBe(0);
  });

  it('that is under way when the application closes keeps its deadline', async () => {
    const { api, close } = await limited({ deadlineMs: 150 });
    const late = errorOf(api.call(() => new Promise(() => {})));
    await close();
    expect((await late).code).toBe('PERF_ERR_DEADLINE');
  });
});

describe('with the kill switch on', () => {
  it('calls pass as they are, and only the fallback still answers', async () => {
    const { api, app, url } = await limited(
      { deadlineMs: 20, maxInFlight: 1, breaker: { atLeast: 1 } },
      {
        adapter: 'express',
        metadata,
        perf: { enabled: false },
      },
    );
    const slow = (): Promise<string> => new Promise((resolve) => setTimeout(() => resolve('slow'), 60));
    expect(await Promise.all([api.call(slow), api.call(slow)])).toEqual(['slow', 'slow']);
    server.answer = 500;
    for (let i = 0; i < 3; i++) expect((await api.call(asked)).status).toBe(500);
    expect(await api.call(asked, { fallback: () => null })).toBeNull();
    await expect(api.call(() => Promise.reject(new Error('as it is')))).rejects.toThrow('as it is');
    expect([api.state, app.get(PerfService).snapshot().resilience]).toEqual(['closed', null]);
    server.answer = 200;
    expect(await (await fetch(`${url}/call`)).json()).toEqual({ status: 200 });
  });
});
