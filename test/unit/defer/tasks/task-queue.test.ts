import { AsyncLocalStorage } from 'node:async_hooks';
import { array, assert, asyncProperty, boolean, constantFrom, integer } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TaskSequence } from '../../../../src/defer/tasks/task.js';
import { until } from '../../../fixtures/until.js';
import { armingIn, engineWith } from '../engine.fixture.js';
import { expectBalanced } from '../balanced.js';

const never = (): Promise<never> => new Promise(() => {});
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const SPEC = { name: 'task', timeoutMs: 1_000, backoffMs: 200, maxBackoffMs: 30_000 };

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

describe('overflow', () => {
  it('drop-new: refuses what comes when `maxPending` wait, counts it as accepted and dropped', async () => {
    const { engine, defer, records, reports } = engineWith({ maxPending: 2, concurrency: 1 });
    const ran: number[] = [];
    for (let i = 0; i < 5; i++) defer(() => ran.push(i));
    await engine.idle();
    expect(ran).toEqual([0, 1]);
    expect(engine.stats()).toMatchObject({ accepted: 5, completed: 2, dropped: 3 });
    expect(records.filter(({ outcome }) => outcome === 'dropped')).toHaveLength(3);
    expect(reports).toEqual(['deferred work "task" dropped: 2 were waiting already (defer.maxPending).']);
  });

  it('drop-old: makes room by dropping what has waited longest', async () => {
    const { engine, defer } = engineWith({ maxPending: 2, overflow: 'drop-old' });
    const ran: number[] = [];
    for (let i = 0; i < 5; i++) defer(() => ran.push(i));
    await engine.idle();
    expect(ran).toEqual([3, 4]);
    expect(engine.stats()).toMatchObject({ accepted: 5, completed: 2, dropped: 3 });
  });

  it('drop-old within one request drops its first waiting task and keeps the order of the rest', async () => {
    const { engine, defer } = engineWith({ maxPending: 3, overflow: 'drop-old' });
    const sequence = new TaskSequence();
    const ran: number[] = [];
    for (let i = 0; i < 5; i++) defer(() => ran.push(i), { sequence });
    await engine.idle();
    expect(ran).toEqual([2, 3, 4]);
  });

  it('reject: throws PERF_ERR_DEFER_FULL and accepts again when there is room', async () => {
    const { engine, defer } = engineWith({ maxPending: 2, overflow: 'reject' });
    const ran: number[] = [];
    defer(() => ran.push(0));
    defer(() => ran.push(1));
    expect(() => defer(() => ran.push(2), { name: 'audit' })).toThrow(
      'PERF_ERR_DEFER_FULL: no room for deferred work "audit": 2 were waiting already (defer.maxPending).',
    );
    await engine.idle();
    defer(() => ran.push(3));
    await engine.idle();
    expect(ran).toEqual([0, 1, 3]);
    expect(engine.stats()).toMatchObject({ accepted: 3, completed: 3, dropped: 0 });
  });

  it('gives the room of armed work back when it is discarded', () => {
    const { engine } = engineWith({ maxPending: 1, overflow: 'reject' });
    const arm = () => engine.armTask({ ...SPEC, attempts: 1 }, () => {}, armingIn(new TaskSequence()));
    const armed = arm();
    expect(arm).toThrow('PERF_ERR_DEFER_FULL');
    armed?.discard();
    expect(arm()).not.toBeNull();
    expect(engine.stats().accepted).toBe(0);
  });
});

describe('drain', () => {
  it('finishes what was accepted, tasks that are armed by tasks included', async () => {
    const { engine, defer } = engineWith();
    const log: string[] = [];
    defer(async () => (await soon(), log.push('outer'), defer(() => log.push('inner'))));
    await engine.drain(5_000);
    expect(log).toEqual(['outer', 'inner']);
    expect(engine.stats()).toMatchObject({ accepted: 2, completed: 2, pending: 0, running: 0 });
  });

  it('returns at its deadline with a hung task, names it and what waited behind it, and aborts it', async () => {
    const { engine, defer, reports } = engineWith({ concurrency: 1 });
    let aborted = false;
    defer(({ signal }) => (signal.addEventListener('abort', () => (aborted = true)), never()), { name: 'SendReceipt' });
    defer(() => {}, { name: 'Audit' });
    defer(() => {}, { name: 'Audit' });
    await soon();
    const startedMs = performance.now();
    await engine.drain(50);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    expect(aborted).toBe(true);
    expect(reports.at(-1)).toBe(
      '3 deferred tasks were cut off after 50 ms: SendReceipt, Audit (2). Raise `defer.drainTimeoutMs`, or make the work durable.',
    );
    expect(engine.stats()).toMatchObject({ accepted: 3, failed: 1, dropped: 2, pending: 0, running: 0 });
  });

  it('says what it waits for when it takes long', async () => {
    const { engine, defer, reports } = engineWith();
    const ended = engine.handlerStarted();
    let finish = (): void => {};
    defer(() => new Promise<void>((resolve) => (finish = resolve)));
    const drained = engine.drain(60_000);
    await until('what it says', () => reports.length > 0);
    expect(reports).toEqual(['The shutdown waits for 1 handlers and 1 deferred tasks, 60000 ms at the most.']);
    ended();
    finish();
    await drained;
  });

  it('does not wait out the backoff of a task that waits for its next attempt', async () => {
    const { engine, defer } = engineWith();
    let attempts = 0;
    defer(() => (++attempts < 5 ? Promise.reject(new Error('no')) : null), { attempts: 5 });
    await until('the first failure', () => attempts >= 1);
    await engine.drain(2_000);
    expect(engine.stats()).toMatchObject({ completed: 1 });
  });

  it('drops and counts what comes after it', async () => {
    const { engine, defer } = engineWith();
    await engine.drain(100);
    let ran = false;
    defer(() => (ran = true));
    await soon();
    expect(ran).toBe(false);
    expect(engine.stats()).toMatchObject({ accepted: 1, dropped: 1, pending: 0 });
    await engine.idle();
  });
});

describe('the books', () => {
  const behaviours = ['ok', 'async', 'throw', 'reject', 'timeout', 'nested'] as const;
  it('balance after any mix of tasks, policies and limits', { timeout: 120_000 }, async () => {
    await assert(
      asyncProperty(
        array(constantFrom(...behaviours), { maxLength: 40 }),
        integer({ min: 1, max: 10 }),
        integer({ min: 1, max: 4 }),
        constantFrom('drop-new' as const, 'drop-old' as const),
        boolean(),
        async (mix, maxPending, concurrency, overflow, cutShort) => {
          const { engine, defer, records } = engineWith({ maxPending, concurrency, overflow });
          const run = {
            ok: () => {},
            async: soon,
            throw: () => {
              throw new Error('thrown');
            },
            reject: () => Promise.reject(new Error('rejected')),
            timeout: never,
            nested: () => defer(() => {}),
          };
          for (const [i, behaviour] of mix.entries()) {
            defer(run[behaviour], { timeoutMs: 5 });
            if (i % 7 === 0) await soon();
            expectBalanced(engine.stats());
          }
          if (cutShort) await engine.drain(1);
          else await engine.idle();
          const stats = engine.stats();
          expectBalanced(stats);
          expect(stats).toMatchObject({ pending: 0, running: 0 });
          expect(records).toHaveLength(stats.accepted);
          expect(engine.capacity.isEmpty).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});
