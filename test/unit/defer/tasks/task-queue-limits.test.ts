import { array, assert, asyncProperty, boolean, constantFrom, integer } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TaskSequence } from '../../../../src/defer/tasks/task.js';
import { until } from '../../../fixtures/until.js';
import { armingIn, engineWith } from '../engine.fixture.js';
import { expectBalanced } from '../balanced.js';

const never = (): Promise<never> => new Promise(() => {});
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const SPEC = { name: 'task', timeoutMs: 1_000, backoffMs: 200, maxBackoffMs: 30_000 };

describe('overflow', () => {
  it('drop-new: refuses what comes when `maxPending` wait, counts it as accepted and dropped', async () => {
    const { engine, defer, records, reports } = engineWith({ maxPending: 2, concurrency: 1 });
    const ran: number[] = [];
    for (let i = 0; i < 5; i++) defer(() => ran.push(i));
    await engine.idle();
    expect(ran).toEqual([0, 1]);
    expect(engine.stats()).toMatchObject({ accepted: 5, completed: 2, dropped: 3 });
    expect(records.filter(({ outcome }) => outcome === 'dropped')).toHaveLength(3);
    expect(reports).toEqual([
      'deferred work "task" dropped: the limit of 2 waiting items leaves no room (defer.maxPending).',
    ]);
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
      'PERF_ERR_DEFER_FULL: no room for deferred work "audit": the limit of 2 waiting items leaves no room (defer.maxPending).',
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
      'The shutdown has cut off 3 deferred tasks after 50 ms: SendReceipt, Audit (2). Raise `defer.drainTimeoutMs`, or make the work durable.',
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
    expect(reports).toEqual(['The shutdown waits for 1 handler and 1 deferred task, 60000 ms at the most.']);
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
          expect(engine.room.isEmpty).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});
