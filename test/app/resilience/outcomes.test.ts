import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cleanups, cleanUp, limited } from '../../fixtures/resilience.js';
import { scriptedServer, type ScriptedServer } from '../../fixtures/scripted-server.js';
import { until } from '../../fixtures/until.js';

let server: ScriptedServer;
beforeEach(async () => {
  server = await scriptedServer();
  cleanups.push(server.close);
});
afterEach(cleanUp);

const asked = ({ signal }: { signal: AbortSignal }): Promise<Response> => fetch(server.url, { signal });

describe('a call with limits', () => {
  it('has its fallback answer for what fails, is refused or comes too late, and counts the failure all the same', async () => {
    const { api } = await limited({ deadlineMs: 200, maxInFlight: 1, breaker: false });
    const failures: unknown[] = [];
    const fallback = (failure: unknown): string => {
      failures.push((failure as { code?: string }).code ?? (failure as Response).status);
      return 'stale';
    };
    const late = api.call(() => new Promise<string>(() => {}), { fallback });
    expect(await api.call(asked, { fallback })).toBe('stale');
    expect(await late).toBe('stale');
    server.answer = 500;
    expect(await api.call(asked, { fallback, deadlineMs: 60_000 })).toBe('stale');
    expect(failures).toEqual(['PERF_ERR_BUSY', 'PERF_ERR_DEADLINE', 500]);
    const { failed, ownDeadlines, ...stats } = api.stats();
    expect(stats).toMatchObject({ calls: 3, succeeded: 0, refusedBusy: 1, fallbacks: 3 });
    expect(failed + ownDeadlines).toBe(2);
  });

  it('counts results with 4xx as answers, 429, 5xx and all that is thrown as failures', async () => {
    const { api } = await limited();
    for (const status of [404, 429, 502]) {
      server.answer = status;
      await api.call(asked);
    }
    await api.call(() => Promise.reject(Object.assign(new Error(), { response: { status: 404 } }))).catch(() => {});
    await api.call(() => Promise.reject(Object.assign(new Error(), { status: 503 }))).catch(() => {});
    expect(api.stats()).toMatchObject({ succeeded: 1, failed: 4 });
  });

  it("reads a result's own status and headers", async () => {
    const { api } = await limited({ deadlineMs: 5_000 });
    for (const result of [{ status: 503 }, { statusCode: 503, response: { status: 200 } }]) {
      expect(await api.call(() => result)).toBe(result);
    }
    expect(api.stats()).toMatchObject({ succeeded: 0, failed: 2 });
    const headers = { 'retry-after': '60' };
    const now = { status: 503, headers, response: { headers: {} } };
    // There is no time for the wait that it asks for.
    await api.call(() => now, { idempotent: true });
    expect(api.stats()).toMatchObject({ failed: 3, retries: 0 });
  });

  it('lets `isFailure` make answers of what a client throws for a 404', async () => {
    const { api } = await limited({
      isFailure: (outcome, thrown) => thrown && (outcome as { status?: number }).status !== 404,
    });
    for (const status of [404, 400]) {
      await api.call(() => Promise.reject(Object.assign(new Error(), { status }))).catch(() => {});
    }
    expect(api.stats()).toMatchObject({ succeeded: 1, failed: 1 });
  });

  it('learns nothing from what the application has aborted itself: a breaker that tries again goes on trying', async () => {
    const { api } = await limited({ breaker: { atLeast: 1, openMs: 50, probes: 2 } });
    await expect(api.call(() => Promise.reject(new Error('down')))).rejects.toThrow('down');
    await until('it is tried again', () => api.state === 'half-open');
    const controller = new AbortController();
    controller.abort();
    for (let i = 0; i < 5; i++) {
      await expect(api.call(() => fetch(server.url, { signal: controller.signal }))).rejects.toThrow('aborted');
    }
    expect(api.state).toBe('half-open');
    expect(api.stats()).toMatchObject({ failed: 1, durationMs: { max: 0 } });
    for (let i = 0; i < 2; i++) await api.call(asked);
    expect(api.state).toBe('closed');
  });

  it('lets `isFailure` decide, and reports one that throws', async () => {
    const { api } = await limited({ isFailure: (outcome) => (outcome as Response).status === 418 });
    for (const status of [500, 418]) {
      server.answer = status;
      await api.call(asked);
    }
    expect(api.stats()).toMatchObject({ succeeded: 1, failed: 1 });
    const { api: broken } = await limited({
      isFailure: () => {
        throw new Error('broken rule');
      },
    });
    expect(await broken.call(() => 'answer')).toBe('answer');
    await expect(broken.call(() => Promise.reject(new Error('thrown')))).rejects.toThrow('thrown');
    expect(broken.stats()).toMatchObject({ succeeded: 1, failed: 1, inFlight: 0 });
  });

  it('ends whatever its work returns or throws', async () => {
    const { api } = await limited({ breaker: false });
    const hostile = {
      get status(): number {
        throw new Error('status');
      },
    };
    expect(await api.call(() => hostile, { idempotent: true })).toBe(hostile);
    const headers = {
      get: () => {
        throw new Error('headers');
      },
    };
    await expect(api.call(() => ({ status: 503, headers }), { idempotent: true })).rejects.toThrow('headers');
    // oxlint-disable-next-line unicorn/no-thenable -- a client's own promise, and a broken one
    const broken = { then: () => { throw new Error('then'); } }; // prettier-ignore
    await expect(api.call(() => broken as never)).rejects.toThrow('then');
    for (const value of [null, undefined, 0, '', Symbol.iterator]) expect(await api.call(() => value)).toBe(value);
    await expect(api.call(() => Promise.reject(undefined as never))).rejects.toBeUndefined();
    expect(api.stats().inFlight).toBe(0);
  });
});
