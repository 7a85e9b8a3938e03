import { describe, expect, it } from 'vitest';
import type { BatchItem, DeferOptions } from '../../../../src/index.js';
import type { ClassWork } from '../../../../src/defer/decorator/work-providers.js';
import { RequestWork } from '../../../../src/defer/request-work.js';
import { TaskSequence } from '../../../../src/defer/tasks/task.js';
import { readEnqueueOptions } from '../../../../src/defer/work-options.js';
import { until } from '../../../fixtures/until.js';
import { expectBalanced } from '../balanced.js';
import { answered, armingIn, engineWith } from '../engine.fixture.js';

/** An engine, and work with `runBatch` that remembers its batches. */
function batching(
  options: DeferOptions,
  work: Parameters<typeof readEnqueueOptions>[0],
  attempts: Promise<void>[] = [],
) {
  const batches: unknown[][] = [];
  class WriteAudit {
    async runBatch(items: readonly BatchItem<unknown>[]): Promise<void> {
      batches.push(items.map(({ data }) => data));
      await attempts.shift();
    }
  }
  const instance = new WriteAudit();
  const planned: ClassWork = {
    ...readEnqueueOptions(work, 'work'),
    name: 'WriteAudit',
    label: 'WriteAudit',
    kind: 'batch',
    provide: () => instance,
    durableName: null,
  };
  const { engine, reports, records, defer } = engineWith(options);
  const arm = (data: unknown, sequence = new TaskSequence()) => {
    return engine.armClass(planned, instance, data, armingIn(sequence));
  };
  return { engine, batches, arm, reports, records, defer };
}

describe('batches', () => {
  it('of items that come after one was dropped run, although the wait of the first has passed', async () => {
    const { engine, batches, arm } = batching({ maxPending: 1, overflow: 'drop-old' }, { batch: { maxWaitMs: 5 } });
    arm('first')!.commit(null);
    const second = arm('second')!;
    await new Promise((resolve) => setTimeout(resolve, 50));
    second.commit(200);
    await until('the second to run', () => batches.length === 1);
    await engine.idle();
    expect(batches).toEqual([['second']]);
    expect(engine.stats()).toMatchObject({ accepted: 2, completed: 1, dropped: 1, pending: 0 });
  });

  it('run one at a time: what comes meanwhile makes the next one', async () => {
    let end = (): void => {};
    const first = new Promise<void>((resolve) => (end = resolve));
    const { engine, batches, arm } = batching({}, { batch: { maxItems: 100, maxWaitMs: 1 } }, [first]);
    arm(0)!.commit(null);
    await until('the first to run', () => batches.length === 1);
    for (let i = 1; i <= 20; i++) {
      arm(i)!.commit(null);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(batches).toHaveLength(1);
    end();
    await engine.idle();
    expect(batches).toEqual([[0], Array.from({ length: 20 }, (_, i) => i + 1)]);
    expectBalanced(engine.stats());
  });

  it('drop-old: the oldest of all goes, whether it is an item or a task', async () => {
    const { engine, arm, records, defer } = batching(
      { maxPending: 2, concurrency: 1, overflow: 'drop-old' },
      { batch: { maxWaitMs: 60_000 } },
    );
    let end = (): void => {};
    defer(() => new Promise<void>((resolve) => (end = resolve)));
    await until('it to run', () => engine.stats().running === 1);
    const dropped = (): string[] => records.map(({ name }) => name);
    arm('item')!.commit(null);
    defer(() => {}, { name: 'first task' });
    defer(() => {}, { name: 'second task' });
    expect(dropped()).toEqual(['WriteAudit']);
    arm('item')!.commit(null);
    expect(dropped()).toEqual(['WriteAudit', 'first task']);
    end();
    await engine.drain(1_000);
  });

  it('drop-old: what the own request has armed first goes, when nothing older waits', async () => {
    const { engine, batches, arm } = batching({ maxPending: 2, overflow: 'drop-old' }, { batch: { maxWaitMs: 5 } });
    const request = new RequestWork(new Set());
    for (let i = 0; i < 4; i++) request.arm(arm(i, request.sequence)!);
    request.ended(answered);
    await engine.idle();
    expect(batches).toEqual([[2, 3]]);
    expect(engine.stats()).toMatchObject({ accepted: 4, completed: 2, dropped: 2 });
  });

  it('drop-old: what another request has armed goes, when it is the oldest, and does not run once that request ends', async () => {
    const { engine, batches, arm } = batching({ maxPending: 2, overflow: 'drop-old' }, { batch: { maxWaitMs: 5 } });
    const [slow, fast] = [new RequestWork(new Set()), new RequestWork(new Set())];
    slow.arm(arm('oldest', slow.sequence)!);
    for (const data of ['a', 'b']) fast.arm(arm(data, fast.sequence)!);
    fast.ended(answered);
    slow.ended(answered);
    await engine.idle();
    expect(batches).toEqual([['a', 'b']]);
    expect(engine.stats()).toMatchObject({ accepted: 3, completed: 2, dropped: 1, pending: 0 });
    expect(engine.room.isEmpty).toBe(true);
  });

  it('that the application’s end cuts off are told item by item, running, waiting or to be tried again', async () => {
    const failing = Promise.reject(new Error('the database is away'));
    failing.catch(() => {});
    const never = new Promise<void>(() => {});
    const work = { attempts: 3, backoffMs: 0, batch: { maxItems: 2, maxWaitMs: 1 } };
    const { engine, batches, arm, reports } = batching({}, work, [failing, never]);
    for (let i = 0; i < 5; i++) arm(i)!.commit(null);
    await until('the second attempt', () => batches.length === 2);
    await engine.drain(20);
    expect(batches).toEqual([
      [0, 1],
      [0, 1],
    ]);
    expect(engine.stats()).toMatchObject({ accepted: 5, failed: 2, dropped: 3, retried: 2, pending: 0, running: 0 });
    expect(engine.room.isEmpty).toBe(true);
    expect(reports.at(-1)).toContain('The shutdown has cut off 5 deferred tasks after 20 ms: WriteAudit (5)');
  });
});
