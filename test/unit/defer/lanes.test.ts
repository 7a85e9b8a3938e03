import { expect, it } from 'vitest';
import type { DeferredBatchWork } from '../../../src/index.js';
import { readEnqueueOptions } from '../../../src/defer/work-options.js';
import { armingIn, engineWith } from './engine.fixture.js';
import { TaskSequence } from '../../../src/defer/tasks/task.js';

it('a batch work with a name for each tenant runs every item, and armed items of a lane that has gone run as well', async () => {
  const { engine } = engineWith({ maxPending: 100_000 });
  const ran: unknown[] = [];
  class WriteAudit implements DeferredBatchWork<number> {
    runBatch(items: readonly { data: number }[]): void {
      ran.push(...items.map(({ data }) => data));
    }
  }
  const instance = new WriteAudit();
  const provided = {
    type: WriteAudit,
    kind: 'batch' as const,
    provide: () => instance,
    durableName: null,
    label: 'here',
  };
  const arm = (name: string, data: number) =>
    engine.armClass(
      { ...readEnqueueOptions({ batch: { maxWaitMs: 1 } }, 'work'), ...provided, name },
      instance,
      data,
      armingIn(new TaskSequence()),
    );
  const early = arm('early', -1)!;
  for (let i = 0; i < 1_000; i++) arm(`audit ${i}`, i)!.commit(null);
  await engine.idle();
  for (let i = 1_000; i < 1_300; i++) arm(`audit ${i}`, i)!.commit(null);
  early.commit(null);
  await engine.idle();
  expect(new Set(ran).size).toBe(1_301);
});
