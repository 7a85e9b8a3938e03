import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { TaskSequence } from '../../../../src/defer/tasks/task.js';
import { until } from '../../../fixtures/until.js';
import { engineWith } from '../engine.fixture.js';

const never = (): Promise<never> => new Promise(() => {});
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the in-process queue', () => {
  it('runs a task in a later turn, never in the caller’s', async () => {
    const { engine, defer } = engineWith();
    let ran = false;
    defer(() => (ran = true));
    expect(ran).toBe(false);
    await engine.idle();
    expect(ran).toBe(true);
  });

  it('runs the tasks of one request one after the other, in their order, asynchronous ones included', async () => {
    const { engine, defer } = engineWith();
    const sequence = new TaskSequence();
    const log: string[] = [];
    defer(async () => (log.push('a starts'), await soon(), await soon(), log.push('a ends')), { sequence });
    defer(() => log.push('b'), { sequence });
    defer(async () => (await soon(), log.push('c')), { sequence });
    await engine.idle();
    expect(log).toEqual(['a starts', 'a ends', 'b', 'c']);
  });

  it('keeps the place of a task that is tried again', async () => {
    const { engine, defer } = engineWith();
    const sequence = new TaskSequence();
    const log: string[] = [];
    defer(({ attempt }) => (log.push(`a${attempt}`), attempt < 2 ? Promise.reject(new Error('not yet')) : null), {
      sequence,
      attempts: 2,
    });
    defer(() => log.push('b'), { sequence });
    await engine.idle();
    expect(log).toEqual(['a1', 'a2', 'b']);
    expect(engine.stats()).toMatchObject({ accepted: 2, completed: 2, retried: 1, failed: 0 });
  });

  it('never runs more at a time than `concurrency`', async () => {
    const { engine, defer } = engineWith({ concurrency: 3 });
    let running = 0;
    let most = 0;
    for (let i = 0; i < 20; i++) {
      defer(async () => {
        most = Math.max(most, ++running);
        await soon();
        running -= 1;
      });
    }
    await engine.idle();
    expect(most).toBe(3);
    expect(engine.stats()).toMatchObject({ accepted: 20, completed: 20 });
  });

  it('gives the event loop back every few milliseconds: 300 tasks of 1 ms', async () => {
    const { engine, defer } = engineWith();
    const spin = (): void => {
      const until = performance.now() + 1;
      while (performance.now() < until);
    };
    let tasksInTurn = 0;
    let mostInTurn = 0;
    for (let i = 0; i < 300; i++) defer(() => ((mostInTurn = Math.max(mostInTurn, ++tasksInTurn)), spin()));
    let turning = true;
    const turn = (): void => {
      tasksInTurn = 0;
      if (turning) setImmediate(turn);
    };
    setImmediate(turn);
    await engine.idle();
    turning = false;
    // 2 ms of budget and one task that starts just before its end. Counted, not timed: a busy machine only lowers it.
    expect(mostInTurn).toBeLessThanOrEqual(3);
    expect(engine.stats().completed).toBe(300);
  });

  it('survives tasks that throw, reject, or throw something that cannot be printed, and counts them', async () => {
    const { engine, defer, records, reports } = engineWith();
    const unprintable = Object.create(null) as Error;
    defer(() => {
      throw new Error('thrown');
    });
    defer(() => Promise.reject(new Error('rejected')));
    defer(() => {
      throw unprintable;
    });
    defer(() => ({
      // oxlint-disable-next-line unicorn/no-thenable -- hostile on purpose
      get then(): never {
        throw new Error('a getter that throws');
      },
    }));
    await engine.idle();
    expect(engine.stats()).toMatchObject({ accepted: 4, failed: 4, completed: 0 });
    expect(records.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'failed', 'failed']);
    expect(reports[0]).toBe('deferred work "task" failed: thrown (attempt 1). The response was not affected.');
  });

  it('reports a failure once per cause and counts the rest', async () => {
    const { engine, defer, reports } = engineWith();
    for (let i = 0; i < 50; i++) defer(() => Promise.reject(new Error('no mail server')), { name: 'receipt' });
    await engine.idle();
    expect(reports).toEqual([
      'deferred work "receipt" failed: no mail server (attempt 1). The response was not affected.',
    ]);
  });

  it('aborts the signal of a task that takes too long, counts it as failed, and goes on with the next', async () => {
    const { engine, defer, records } = engineWith({ concurrency: 1 });
    let aborted: unknown = null;
    defer(({ signal }) => (signal.addEventListener('abort', () => (aborted = signal.reason)), never()), {
      timeoutMs: 20,
      name: 'hangs',
    });
    defer(() => {}, { name: 'next' });
    await engine.idle();
    expect(aborted).toBeInstanceOf(Error);
    expect(records.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['hangs', 'timeout'],
      ['next', 'completed'],
    ]);
    expect(engine.stats()).toMatchObject({ completed: 1, failed: 1, running: 0 });
  });

  it('hands an aborted signal to a task that looks at it only after its timeout', async () => {
    const { engine, defer } = engineWith();
    let late: boolean | null = null;
    let release = (): void => {};
    defer(
      async (info) => {
        await new Promise<void>((resolve) => (release = resolve));
        late = info.signal.aborted;
      },
      { timeoutMs: 10 },
    );
    await engine.idle();
    release();
    await until('the late look', () => late !== null);
    expect(late).toBe(true);
  });

  it('ignores what a task does after its timeout, a rejection included', async () => {
    const { engine, defer } = engineWith();
    let reject: (error: Error) => void = () => {};
    defer(() => new Promise((_, fail) => (reject = fail)), { timeoutMs: 10 });
    await engine.idle();
    reject(new Error('late'));
    await soon();
    expect(engine.stats()).toMatchObject({ failed: 1, completed: 0 });
  });

  it('tries again up to `attempts` times, telling each attempt its number', async () => {
    const { engine, defer, records } = engineWith();
    const attempts: number[] = [];
    defer(({ attempt }) => (attempts.push(attempt), Promise.reject(new Error('no'))), { attempts: 3 });
    await until('all attempts', () => attempts.length === 3);
    await engine.idle();
    expect(attempts).toEqual([1, 2, 3]);
    expect(engine.stats()).toMatchObject({ accepted: 1, failed: 1, retried: 2 });
    expect(records).toMatchObject([{ outcome: 'failed', attempt: 3, error: 'no' }]);
  });

  it('runs each task in the async context it was armed in', async () => {
    const { engine, defer } = engineWith();
    const store = new AsyncLocalStorage<number>();
    const seen: [number, number | undefined, number | undefined][] = [];
    for (let i = 0; i < 200; i++) {
      store.run(i, () =>
        defer(async () => {
          const before = store.getStore();
          await soon();
          seen.push([i, before, store.getStore()]);
        }),
      );
    }
    await engine.idle();
    expect(seen).toHaveLength(200);
    expect(seen.filter(([own, before, after]) => own !== before || own !== after)).toEqual([]);
  });

  it('holds no memory of what has run', async () => {
    const { engine, defer } = engineWith({ maxPending: 100_000 });
    const refs: WeakRef<object>[] = [];
    for (let i = 0; i < 1000; i++) {
      const data = { i };
      refs.push(new WeakRef(data));
      defer(() => void data.i);
    }
    await engine.idle();
    const gc = (globalThis as { gc?: () => void }).gc;
    const { setFlagsFromString } = await import('node:v8');
    setFlagsFromString('--expose-gc');
    const collect = gc ?? ((await import('node:vm')).runInNewContext('gc') as () => void);
    await soon();
    collect();
    expect(refs.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(10);
  });
});
