import { afterEach, describe, expect, it, vi } from 'vitest';
import { cockatielBreaker } from '../../../src/entries/resilience/cockatiel-breaker.js';
import { Deadlines } from '../../../src/resilience/deadlines.js';
import { CalledUpstream } from '../../../src/resilience/called-upstream.js';
import { fakeLoop } from '../../fixtures/fake-loop.js';

const { nowMs, block, turn } = fakeLoop();
afterEach(() => void vi.restoreAllMocks());

async function upstream(deadlineMs: number, requestDeadlineMs: number | null = null) {
  const breaker = { ratio: 0.5, atLeast: 20, windowMs: 30_000, openMs: 5_000, probes: 5 };
  const api = new CalledUpstream(
    'api',
    { deadlineMs, retries: 2, maxInFlight: 1_000, breaker, isFailure: null },
    {
      nowMs,
      deadlines: new Deadlines(nowMs),
      report: () => {},
      requestDueMs: () => (requestDeadlineMs === null ? Infinity : nowMs() + requestDeadlineMs),
      requestDeadlineMs,
    },
  );
  api.limit(await cockatielBreaker());
  /** `afterMs` of the loop's own time, null: never. */
  const call = (afterMs: number | null, idempotent = false): void => {
    const answer = (): Promise<string> =>
      new Promise((resolve) => afterMs !== null && setTimeout(() => resolve('answer'), afterMs));
    api.call(answer, { idempotent }).catch(() => {});
  };
  return { api, call };
}

describe('a deadline that passes', () => {
  it('is our own where the loop has turned for less, however much of it that was', async () => {
    const { api, call } = await upstream(1_000);
    for (let i = 0; i < 25; i++) call(650);
    block(400);
    await turn(1_100);
    expect(api.stats()).toMatchObject({ state: 'closed', ownDeadlines: 25, failed: 0, deadlines: 0, opened: 0 });
  });

  it('is our own where the block was before a retry', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { api } = await upstream(1_000);
    const work = ({ attempt }: { attempt: number }): Promise<string> => {
      if (attempt === 1) return Promise.reject(new Error('broken connection'));
      return new Promise((resolve) => setTimeout(() => resolve('answer'), 650));
    };
    api.call(work, { idempotent: true }).catch(() => {});
    await turn(30);
    block(400);
    await turn(1_100);
    expect(api.stats()).toMatchObject({ attempts: 2, ownDeadlines: 1, failed: 0, deadlines: 0 });
  });

  it("is the upstream's where the loop has turned, a timer that was a little late included", async () => {
    const { api, call } = await upstream(1_000);
    for (let i = 0; i < 25; i++) call(null);
    await turn(500);
    block(45);
    await turn(600);
    expect(api.stats()).toMatchObject({ state: 'open', ownDeadlines: 0, failed: 25, deadlines: 25 });
  });

  it('stays our own for as long as there are answers between', async () => {
    const { api, call } = await upstream(1_000);
    for (let i = 0; i < 20; i++) {
      for (let n = 0; n < 25; n++) call(650);
      block(400);
      await turn(700);
      call(5);
      await turn(10);
    }
    expect(api.stats()).toMatchObject({ state: 'closed', ownDeadlines: 500, failed: 0, succeeded: 20 });
  });

  it("is never the upstream's where a request had less time, however often", async () => {
    const { api, call } = await upstream(1_000, 500);
    for (let i = 0; i < 30; i++) {
      call(null);
      await turn(520);
    }
    expect(api.stats()).toMatchObject({ state: 'closed', ownDeadlines: 30, failed: 0 });
  });
});
