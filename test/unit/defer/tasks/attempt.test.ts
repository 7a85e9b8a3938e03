import { AsyncResource } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Attempt, type Told } from '../../../../src/defer/tasks/attempt.js';

const told: Told = { id: 'a', traceparent: null, requestId: null, status: null, attempt: 1 };

describe('an attempt that never ends', () => {
  let outcomes: string[];
  let attempt: Attempt<null>;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    outcomes = [];
    attempt = new Attempt(null, told, (_, outcome) => void outcomes.push(outcome));
    attempt.start(() => new Promise(() => {}), new AsyncResource('Test'), 1_000);
  });
  afterEach(() => void vi.useRealTimers());

  it('is given up after its timeout', () => {
    vi.advanceTimersByTime(999);
    expect(outcomes).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(outcomes).toEqual(['timeout']);
    expect(attempt.info.signal.aborted).toBe(true);
  });

  it('is not reported after the application has closed, which asked it to end', () => {
    attempt.abort(new Error('the application closes'));
    expect(attempt.info.signal.aborted).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect(outcomes).toEqual([]);
  });
});

it('that has ended by itself aborts no signal, also one that is first looked at later', async () => {
  const ended: string[] = [];
  const attemptOf = (run: () => unknown): Attempt<null> => {
    const attempt = new Attempt(null, told, (_, outcome) => void ended.push(outcome));
    attempt.start(run, new AsyncResource('Test'), 1_000);
    return attempt;
  };
  const fail = (): never => {
    throw new Error('failed');
  };
  const attempts = [attemptOf(() => {}), attemptOf(() => Promise.resolve()), attemptOf(fail)];
  await Promise.resolve().then(() => {});
  expect(ended.toSorted()).toEqual(['completed', 'completed', 'failed']);
  expect(attempts.map(({ info }) => info.signal.aborted)).toEqual([false, false, false]);
});

// V8 allocates what a getter of an object's own needs in the old generation, and the request hangs on it.
it('is told of as plain data, without getters', () => {
  const attempt = new Attempt(null, told, () => {});
  const { signal, ...rest } = attempt.info;
  expect(rest).toEqual({ id: 'a', traceparent: null, requestId: null, status: null, attempt: 1 });
  expect(signal.aborted).toBe(false);
  const properties = Object.values(Object.getOwnPropertyDescriptors(attempt.info));
  expect(properties.filter((property) => !('value' in property))).toEqual([]);
});
