import { describe, expect, it } from 'vitest';
import { RecentCalls, RetryBudget } from '../../../src/guard/recent-calls.js';
import { retryAfterMs, statusOf } from '../../../src/guard/retry-after.js';

describe('the counts of the last while', () => {
  let nowMs = 0;

  it('are forgotten by time, also while nobody calls, and when told to', () => {
    const recent = new RecentCalls(10_000, () => nowMs);
    recent.add(1, 0);
    for (let i = 0; i < 4; i++) {
      recent.add(1, 1);
      nowMs += 4_000;
    }
    expect(recent.sums()).toEqual({ calls: 2, marked: 2 });
    nowMs += 60_000;
    expect(recent.sums()).toEqual({ calls: 0, marked: 0 });
    recent.add(1, 1);
    recent.forget();
    expect(recent.sums()).toEqual({ calls: 0, marked: 0 });
  });
});

describe('the budget of retries', () => {
  it('is a fifth of the calls of ten seconds, and one a second where that is more', () => {
    let nowMs = 50_000;
    const budget = new RetryBudget(() => nowMs);
    const taken = (): number => {
      let retries = 0;
      while (budget.take()) retries += 1;
      return retries;
    };
    expect(taken()).toBe(10);
    for (let i = 0; i < 1_000; i++) budget.called();
    expect(taken()).toBe(190);
    nowMs += 9_000;
    expect(taken()).toBe(0);
    nowMs += 1_000;
    expect(taken()).toBe(10);
  });
});

describe('what an HTTP client has returned or thrown', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it.each<[unknown, number | null, number | null]>([
    [new Response(null, { status: 503, headers: { 'retry-after': '2' } }), 503, 2_000],
    [{ statusCode: 429, headers: { 'retry-after': '0.5' } }, 429, 500],
    [{ response: { status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' } } }, 503, 7_000],
    [{ status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2020 00:00:00 GMT' } }, 503, 0],
    [{ status: 503, headers: { 'retry-after': 'soon' } }, 503, null],
    [{ status: 'ok', headers: null }, null, null],
    [new Error('reset'), null, null],
    [null, null, null],
    ['text', null, null],
  ])('%o', (outcome, status, waitMs) => {
    expect([statusOf(outcome), retryAfterMs(outcome, now)]).toEqual([status, waitMs]);
  });
});
