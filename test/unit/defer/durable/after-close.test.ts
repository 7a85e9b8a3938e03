import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { DurableWorker } from '../../../../src/defer/durable/durable-worker.js';
import { MemoryPlace, MemoryStore } from '../../contract/memory-store.js';
import { temporaryFolder } from '../../../fixtures/disk.js';
import { until } from '../../../fixtures/until.js';
import { getOrAdd } from '../durable-entry.js';
import { engineWith } from '../engine.fixture.js';

let folder: string;
beforeEach(() => void (folder = temporaryFolder()));

/** An application whose worker runs `run`. */
function start(place: MemoryPlace, run: () => unknown) {
  const store = new MemoryStore(place, true, { path: join(folder, 'spill'), maxBytes: 1024 ** 2 });
  const { engine, reports } = engineWith({ store });
  const works = { lookUp: () => ({ kind: 'one' as const, provide: () => ({ run }), durableName: 'SendReceipt' }) };
  const worker = new DurableWorker(works, engine.counters, new Set(), (_, message) => reports.push(message));
  return { engine, reports, durable: engine.durable!, worker };
}

it('a shutdown that waits for a durable job counts it', async () => {
  let finish: (() => void) | null = null;
  const { engine, reports, durable, worker } = start(new MemoryPlace(), () => {
    return new Promise<void>((resolve) => (finish = resolve));
  });
  await durable.start(worker);
  await durable.enqueue({ ...getOrAdd('a'), timeoutMs: 60_000 });
  await until('it to run', () => finish !== null);
  const drained = engine.drain(60_000);
  await until('what it says', () => reports.length > 0);
  expect(reports).toEqual(['The shutdown waits for 0 handlers and 1 deferred task, 60000 ms at the most.']);
  finish!();
  await drained;
});

describe('after the application has closed', () => {
  it('a job that fails at last is neither counted nor told: another process runs it again', async () => {
    const place = new MemoryPlace();
    let fail = (): void => {};
    const { engine, reports, durable, worker } = start(place, () => {
      return new Promise((_, reject) => (fail = () => reject(new Error('too late'))));
    });
    const failed = worker.run([{ ...getOrAdd('a'), data: {}, status: null }], 1).catch((error: Error) => error.message);
    await durable.start(worker);
    await engine.drain(0);
    const before = engine.stats();
    fail();
    expect(await failed).toBe('too late');
    expect(engine.stats()).toEqual(before);
    expect(reports).toEqual([]);
  });

  it('what was being read from the disk is not sent, and goes at the next start', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const first = start(place, () => {});
    await first.durable.start(first.worker);
    await first.durable.enqueue(getOrAdd('a'));
    await first.engine.drain(0);
    place.away = false;
    const second = start(place, () => {});
    await second.durable.start(second.worker);
    second.durable.close('the application closed');
    await second.durable.closeStore(1_000);
    // What would have been sent, would be sent within `batch.maxWaitMs`.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([...place.known]).toEqual([]);
    const third = start(place, () => {});
    await third.durable.start(third.worker);
    await until('the work of the first', () => place.known.has('a'));
    await third.engine.drain(1_000);
  });

  it('nothing is written to the spill, whose lock is free: work is dropped, and told', async () => {
    const { engine, reports, durable, worker } = start(new MemoryPlace(), () => {});
    await durable.start(worker);
    await engine.drain(0);
    const armed = durable.arm(getOrAdd('late'), null)!;
    armed.commit(200);
    await armed.written;
    expect(readdirSync(join(folder, 'spill'))).toEqual([]);
    expect(engine.stats()).toMatchObject({ accepted: 1, dropped: 1, pending: 0 });
    expect(reports.at(-1)).toContain('the application has closed');
  });
});
