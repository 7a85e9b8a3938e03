import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { defer as onSubscription, EMPTY, finalize, NEVER, Subject, throwError, type Observable } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Attempt, type AttemptDetails } from '../../../../src/defer/tasks/attempt.js';
import { until } from '../../../fixtures/until.js';

const details: AttemptDetails = { id: 'a', traceparent: null, requestId: null, status: null, attempt: 1 };

describe('an attempt that never ends', () => {
  let outcomes: string[];
  let attempt: Attempt<null>;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    outcomes = [];
    attempt = new Attempt(null, details, (_, outcome) => void outcomes.push(outcome));
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
    const attempt = new Attempt(null, details, (_, outcome) => void ended.push(outcome));
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

describe('an attempt whose work is an observable', () => {
  const start = (run: () => unknown) => {
    const outcomes: unknown[][] = [];
    const attempt = new Attempt(null, details, (_, ...outcome) => void outcomes.push(outcome));
    attempt.start(run, new AsyncResource('Test'), 60_000);
    return { attempt, outcomes };
  };
  const settled = (outcomes: unknown[]): Promise<void> => until('it to settle', () => outcomes.length > 0);

  it.each<[string, (source: Observable<unknown>) => unknown]>([
    ['itself', (source) => source],
    ['promised', async (source) => source],
  ])('%s: is subscribed to once, and ends when it completes', async (_, form) => {
    const values = new Subject<number>();
    let subscribed = 0;
    const source = onSubscription(() => {
      subscribed += 1;
      return values;
    });
    const { outcomes } = start(() => form(source));
    await until('the subscription', () => values.observed);
    values.next(1);
    await Promise.resolve();
    expect(outcomes).toEqual([]);
    values.complete();
    await settled(outcomes);
    expect({ subscribed, outcomes }).toEqual({ subscribed: 1, outcomes: [['completed', null]] });
  });

  it('completes without a value, and fails with its error', async () => {
    const empty = start(() => EMPTY);
    const failing = start(() => throwError(() => new Error('refused')));
    await Promise.all([settled(empty.outcomes), settled(failing.outcomes)]);
    expect(empty.outcomes).toEqual([['completed', null]]);
    expect(failing.outcomes).toEqual([['failed', new Error('refused')]]);
  });

  it('runs in the async context of its request, also when it is promised', async () => {
    const seen: (string | undefined)[] = [];
    const storage = new AsyncLocalStorage<string>();
    const resource = storage.run('of the request', () => new AsyncResource('Test'));
    const ended: string[] = [];
    const attempt = new Attempt(null, details, (_, outcome) => void ended.push(outcome));
    const source = onSubscription(() => {
      seen.push(storage.getStore());
      return EMPTY;
    });
    attempt.start(() => Promise.resolve(source), resource, 60_000);
    await settled(ended);
    expect(seen).toEqual(['of the request']);
  });

  it.each(['cut', 'abort'] as const)('is unsubscribed from when it is given up: %s', async (how) => {
    const { attempt, outcomes } = start(() => NEVER.pipe(finalize(() => (unsubscribed += 1))));
    let unsubscribed = 0;
    const error = new Error('the application closes');
    attempt[how](error);
    await settled(outcomes);
    expect(unsubscribed).toBe(1);
    expect(outcomes).toEqual([[how === 'cut' ? 'timeout' : 'failed', error]]);
  });
});

// V8 allocates what a getter of an object's own needs in the old generation, and the request hangs on it.
it('is told of as plain data, without getters', () => {
  const attempt = new Attempt(null, details, () => {});
  const { signal, ...rest } = attempt.info;
  expect(rest).toEqual({ id: 'a', traceparent: null, requestId: null, status: null, attempt: 1 });
  expect(signal.aborted).toBe(false);
  const properties = Object.values(Object.getOwnPropertyDescriptors(attempt.info));
  expect(properties.filter((property) => !('value' in property))).toEqual([]);
});
