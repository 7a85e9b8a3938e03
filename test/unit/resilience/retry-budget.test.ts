import { describe, expect, it } from 'vitest';
import { readStatus, readRetryAfter } from '../../../src/resilience/failure.js';
import { RetryBudget } from '../../../src/resilience/retry-budget.js';

describe('the budget of retries', () => {
  it('is a fifth of the recent calls, or ten where that is more, and fades with them', () => {
    let nowMs = 50_000;
    const budget = new RetryBudget(() => nowMs);
    const takeAll = (): number => {
      let retries = 0;
      while (budget.take()) retries += 1;
      return retries;
    };
    expect(takeAll()).toBe(10);
    for (let i = 0; i < 1_000; i++) budget.called();
    expect(takeAll()).toBe(190);
    nowMs += 9_000;
    expect(takeAll()).toBe(0);
    nowMs += 60_000;
    expect(takeAll()).toBe(9);
  });
});

describe('the result or error of an HTTP client', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it.each<[unknown, number | null, number | null]>([
    [new Response(null, { status: 503, headers: { 'retry-after': '2' } }), 503, 2_000],
    [{ statusCode: 429, headers: { 'retry-after': '0.5' } }, 429, 500],
    [{ response: { headers: { 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' } } }, null, 7_000],
    [{ status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2020 00:00:00 GMT' } }, 503, 0],
    [{ status: 503, headers: { 'retry-after': 'soon' } }, 503, null],
    [{ status: 'ok', headers: null }, null, null],
    [new Error('reset'), null, null],
    [null, null, null],
    ['text', null, null],
  ])('%o', (outcome, status, waitMs) => {
    expect([readStatus(outcome), readRetryAfter(outcome, now)]).toEqual([status, waitMs]);
  });
});
