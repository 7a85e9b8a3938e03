import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/redis.mjs';
import type { ResilientUpstream, ResilientUpstreamOptions } from '../../src/entries/resilience.js';
import { cleanups, cleanUp, limited } from '../fixtures/resilience.js';
import { until } from '../fixtures/until.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const PROGRAM = fileURLToPath(new URL('../fixtures/upstream-process.mjs', import.meta.url));

afterEach(cleanUp);

interface Upstream {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  set(behaviour: { afterMs?: number; broken?: boolean }): Promise<void>;
}

async function startUpstream(at = 0): Promise<Upstream> {
  const child = fork(PROGRAM, [String(at)]);
  cleanups.push(() => child.kill('SIGKILL'));
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const set = async (behaviour: object): Promise<void> => {
    child.send(behaviour);
    await once(child, 'message');
  };
  return { url: `http://127.0.0.1:${port}/`, port, child, set };
}

let sinceMs = 0;
async function limitedApi(options: Partial<ResilientUpstreamOptions> = {}): Promise<ResilientUpstream> {
  const { api } = await limited({ deadlineMs: 300, ...options });
  sinceMs = performance.now();
  return api;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
function blockLoop(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

/** How a call ended, and how long it took. */
async function ask(api: ResilientUpstream, url: string): Promise<{ code: string; ms: number }> {
  const startedMs = performance.now();
  const code = await api
    .call(async ({ signal }) => (await fetch(url, { signal })).json(), { idempotent: true })
    .then(
      () => 'answered',
      (error: { code?: string; cause?: { code?: string } }) => error.code ?? error.cause?.code ?? 'thrown',
    );
  return { code, ms: performance.now() - startedMs };
}

/** Five calls every 20 ms for a while. */
async function load(api: ResilientUpstream, url: string, forMs: number): Promise<{ code: string; ms: number }[]> {
  const asked: Promise<{ code: string; ms: number }>[] = [];
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs) {
    for (let i = 0; i < 5; i++) asked.push(ask(api, url));
    await pause(20);
  }
  return Promise.all(asked);
}
const codesOf = (ended: readonly { code: string }[]): Set<string> => new Set(ended.map(({ code }) => code));
/** Of most of them: the machine may keep any one waiting. */
const medianMs = (ended: readonly { ms: number }[]): number =>
  ended.map(({ ms }) => ms).sort((a, b) => a - b)[Math.floor(ended.length / 2)]!;

describe('our own loop blocked for 400 ms', () => {
  const rounds = LONG ? 20 : 1;
  it(`fails no call that was answered meanwhile, whenever the block begins (3 times ${rounds})`, async () => {
    const upstream = await startUpstream();
    const api = await limitedApi();
    for (let round = 0; round < rounds; round++) {
      for (const beforeMs of [0, 5, 30]) {
        const paths = Array.from({ length: 20 }, (_, i) => `${round}-${beforeMs}-${i}`);
        // As in a server: connections are open, and requests of others come from sockets.
        await Promise.all(paths.map(() => fetch(upstream.url).then((response) => response.text())));
        const asked = paths.map((path) => ask(api, `${upstream.url}${path}`));
        await pause(beforeMs);
        await fetch(upstream.url).then(() => blockLoop(400));
        const blockedUntil = Date.now();
        const ended = await Promise.all(asked);
        const answers = (await (await fetch(`${upstream.url}answers`)).json()) as Record<string, number>;
        const wronged = paths.filter(
          (path, i) => ended[i]!.code !== 'answered' && answers[`/${path}`]! < blockedUntil - 5,
        );
        expect(wronged).toEqual([]);
      }
    }
    expect(api.stats()).toMatchObject({ state: 'closed', opened: 0 });
  }, 120_000);

  it('that keeps calls from being sent is counted apart, and opens nothing', async () => {
    const upstream = await startUpstream();
    const api = await limitedApi({ breaker: { atLeast: 5 } });
    await upstream.set({ afterMs: 200 });
    const asked = Array.from({ length: 20 }, () => ask(api, upstream.url));
    // Not one byte has been sent: connections are made in later turns of the loop.
    blockLoop(400);
    expect([...codesOf(await Promise.all(asked))]).toEqual(['PERF_ERR_DEADLINE']);
    expect(api.stats()).toMatchObject({ state: 'closed', failed: 0, deadlines: 0, ownDeadlines: 20 });
  });

  it('ends what a stalled upstream holds right after the block', async () => {
    const upstream = await startUpstream();
    const api = await limitedApi();
    upstream.child.kill('SIGSTOP');
    const asked = ask(api, upstream.url);
    await pause(100);
    blockLoop(400);
    const { code, ms } = await asked;
    expect(code).toBe('PERF_ERR_DEADLINE');
    expect(ms).toBeLessThan(2 * 500);
    upstream.child.kill('SIGCONT');
  });
});

describe('an upstream that', () => {
  const breaker = { openMs: 200, probes: 3 };
  it('is killed is asked no more, and asked again when it is back', async () => {
    // One that no client is given while nobody listens there.
    const upstream = await startUpstream(await freePort());
    const api = await limitedApi({ breaker });
    await load(api, upstream.url, 100);
    upstream.child.kill('SIGKILL');
    await once(upstream.child, 'exit');
    await load(api, upstream.url, LONG ? 5_000 : 800);
    await until('it is open', async () => (await ask(api, upstream.url)).code === 'PERF_ERR_OPEN');
    expect(api.stats().opened).toBeGreaterThan(0);
    await startUpstream(upstream.port);
    await until('it is asked again', async () => (await ask(api, upstream.url)).code === 'answered');
    await until(
      'the breaker is closed',
      async () => (await ask(api, upstream.url)).code !== '' && api.state === 'closed',
    );
    expectFewRetries(api);
  }, 60_000);

  it('stalls costs its callers the deadline until the breaker is open, and little after it', async () => {
    const upstream = await startUpstream();
    const api = await limitedApi({ breaker: { ...breaker, openMs: 5_000 } });
    await load(api, upstream.url, 100);
    upstream.child.kill('SIGSTOP');
    await load(api, upstream.url, LONG ? 12_000 : 700);
    await until('it is open', async () => (await ask(api, upstream.url)).code === 'PERF_ERR_OPEN');
    const refused = await load(api, upstream.url, 200);
    expect([...codesOf(refused)]).toEqual(['PERF_ERR_OPEN']);
    expect(medianMs(refused)).toBeLessThan(300 / 3);
    expectFewRetries(api);
    upstream.child.kill('SIGCONT');
  }, 60_000);

  it('is ten times slower but in time is asked as before', async () => {
    const upstream = await startUpstream();
    const api = await limitedApi({ deadlineMs: 5_000, breaker });
    await upstream.set({ afterMs: 200 });
    const ended = await load(api, upstream.url, LONG ? 5_000 : 500);
    expect([...codesOf(ended)]).toEqual(['answered']);
    expect(api.stats()).toMatchObject({ opened: 0, failed: 0, attempts: ended.length });
  }, 60_000);

  it('flaps gets no more than a fifth of calls on top, and its callers an answer when it is well', async () => {
    const upstream = await startUpstream();
    const api = await limitedApi({ deadlineMs: 2_000, breaker });
    for (let i = 0; i < (LONG ? 10 : 3); i++) {
      await upstream.set({ broken: true });
      await load(api, upstream.url, 300);
      await upstream.set({ broken: false });
      await until('it is well', async () => (await ask(api, upstream.url)).code === 'answered');
    }
    expectFewRetries(api);
  }, 60_000);
});

/** A fifth of the calls that were let through, or one a second of each ten: a busy machine takes more of these. */
function expectFewRetries(api: ResilientUpstream): void {
  const { attempts, retries } = api.stats();
  const tens = Math.ceil((1_000 + performance.now() - sinceMs) / 10_000);
  expect(retries).toBeLessThanOrEqual(Math.max(10, 0.2 * (attempts - retries)) + 10 * (tens - 1));
}
