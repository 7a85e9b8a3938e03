import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadlines, Timed } from '../../../../src/defer/tasks/deadlines.js';

const late: string[] = [];

class Job extends Timed {
  readonly startedMs = performance.now();
  constructor(readonly name: string) {
    super();
  }
  timeOut(timeoutMs: number): void {
    late.push(`${this.name} after ${timeoutMs}`);
  }
}

describe('deadlines', () => {
  const root = new AsyncResource('Root');
  let deadlines: Deadlines<Job>;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    late.length = 0;
    deadlines = new Deadlines(root);
  });
  afterEach(() => vi.useRealTimers());
  const add = (name: string, timeoutMs: number): Job => {
    const job = new Job(name);
    deadlines.add(job, timeoutMs);
    return job;
  };

  it('tells each that is still there when its time is up, whatever the others may take', () => {
    add('a', 100);
    add('long', 1_000);
    vi.advanceTimersByTime(60);
    add('b', 100);
    vi.advanceTimersByTime(39);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual(['a after 100']);
    vi.advanceTimersByTime(60);
    expect(late).toEqual(['a after 100', 'b after 100']);
    vi.advanceTimersByTime(839);
    expect(late).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(late.at(-1)).toBe('long after 1000');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('says nothing to those that ended in time, wherever they stood', () => {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => add(name, 100));
    deadlines.remove(b!);
    deadlines.remove(d!);
    deadlines.remove(a!);
    deadlines.remove(a!);
    expect([...deadlines.all()]).toEqual([c]);
    vi.advanceTimersByTime(100);
    expect(late).toEqual(['c after 100']);
    expect([...deadlines.all()]).toEqual([]);
  });

  it('has one timer for each duration, and none once nobody has waited for that long', () => {
    for (let i = 0; i < 1_000; i++) deadlines.remove(add(`${i}`, 100 + (i % 2)));
    expect(vi.getTimerCount()).toBe(2);
    vi.advanceTimersByTime(101);
    expect(vi.getTimerCount()).toBe(0);
    add('later', 100);
    vi.advanceTimersByTime(100);
    expect(late).toEqual(['later after 100']);
  });

  it('keeps no caller’s context alive in its timers', () => {
    const store = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    class Curious extends Job {
      override timeOut(): void {
        seen.push(store.getStore());
      }
    }
    store.run('a request', () => deadlines.add(new Curious('a'), 100));
    vi.advanceTimersByTime(100);
    expect(seen).toEqual([undefined]);
  });

  it('is silent once cleared', () => {
    add('a', 100);
    deadlines.clear();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(1_000);
    expect(late).toEqual([]);
  });
});
