import { AsyncResource } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Attempt, type Attempted } from '../../../../src/defer/tasks/attempt.js';

const subject: Attempted = { id: 'a', traceparent: null, requestId: null, status: null, attempt: 1 };

describe('an attempt that never ends', () => {
  let outcomes: string[];
  let attempt: Attempt;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    outcomes = [];
    attempt = new Attempt(subject, 0, (_, outcome) => void outcomes.push(outcome));
    attempt.start(() => new Promise(() => {}), new AsyncResource('Test'), 1_000);
  });
  afterEach(() => void vi.useRealTimers());

  it('is given up after its timeout', () => {
    vi.advanceTimersByTime(999);
    expect(outcomes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(outcomes).toEqual(['timeout']);
    expect(attempt.signal.aborted).toBe(true);
  });

  it('is not reported after the application has closed, which asked it to end', () => {
    attempt.abort(new Error('the application closes'));
    expect(attempt.signal.aborted).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect(outcomes).toEqual([]);
  });
});
