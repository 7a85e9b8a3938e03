import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished, vi } from 'vitest';
import { handlePrototype, temporaryFolder } from '../../fixtures/disk.js';
import { queueName, queueNamed } from '../../fixtures/redis.js';
import { until } from '../../fixtures/until.js';
import { engineWith } from '../defer/engine.fixture.js';
import { getOrAdd, NO_WORKER } from '../defer/durable-entry.js';
import { expectBalanced } from '../defer/balanced.js';
import { MemoryPlace, MemoryStore } from './memory-store.js';

it('what BullMQ refuses for good of the own queue is told and counted; the rest of its bulk is stored', async () => {
  const queue = queueNamed(queueName());
  const { engine, reports } = engineWith();
  onTestFinished(() => engine.drain(100));
  const add = (name: string, data: unknown, opts?: object): void =>
    engine.armJob(queue, name, data, opts, null)!.commit(null);
  for (let i = 0; i < 7; i++) add('small', { i });
  add('large', 'x'.repeat(100), { jobId: 'large-1', sizeLimit: 10 });
  // It is one job's fault only where others get through.
  const others = setInterval(() => add('later', {}), 50);
  onTestFinished(() => clearInterval(others));
  await until('it to be refused', () => engine.stats().failed > 0);
  clearInterval(others);
  await engine.idle();
  expectBalanced(engine.stats());
  expect(engine.stats()).toMatchObject({ failed: 1, dropped: 0 });
  expect(reports).toContainEqual(
    expect.stringMatching(/"test-[^"]+\/large" failed: The size of job large exceeds the limit 10 bytes/),
  );
  expect((await queue.getJobs(['waiting'])).filter(({ name }) => name === 'small')).toHaveLength(7);
});

it('durable work that its store refuses is a dead letter on disk, which the next start sends once more', async () => {
  const folder = temporaryFolder();
  const place = new MemoryPlace();
  const start = async () => {
    const { engine } = engineWith({ store: new MemoryStore(place, false, { path: folder, maxBytes: 1_000_000 }) });
    await engine.durable!.start(NO_WORKER);
    return engine;
  };
  place.refused.add('bad');
  const first = await start();
  const arm = async (id: string): Promise<void> => {
    const armed = first.durable!.arm(getOrAdd(id), null);
    armed?.commit(200);
    await armed?.written;
  };
  const others = setInterval(() => void arm(randomUUID()), 50);
  onTestFinished(() => clearInterval(others));
  await arm('bad');
  await until('it to be refused', () => first.durable!.dead.list().length > 0);
  clearInterval(others);
  await first.idle();
  await first.drain(1_000);

  expect(first.durable!.dead.list()).toMatchObject([
    { id: 'bad', name: 'receipt', data: { id: 'bad' }, error: 'bad is refused' },
  ]);
  place.refused.clear();
  const second = await start();
  onTestFinished(() => second.drain(100));
  await until('it to be sent', () => place.known.has('bad'));
  expect(second.durable!.dead.list()).toEqual([]);
});

it('what is refused again while others are still being sent again stays among the rejects', async () => {
  const ids = ['bad', ...Array.from({ length: 80 }, (_, i) => `good-${i}`)];
  const place = new MemoryPlace();
  place.refused.add('bad');
  const store = new MemoryStore(place, false, { path: temporaryFolder(), maxBytes: 1_000_000 });
  const { engine } = engineWith({ store });
  await engine.durable!.start(NO_WORKER);
  onTestFinished(() => engine.drain(100));
  for (const id of ids) engine.durable!.dead.add(getOrAdd(id), 'refused');
  // A disk on which a write takes its time.
  const sync = vi.spyOn(await handlePrototype(), 'datasync');
  sync.mockImplementation(() => new Promise((resolve) => setTimeout(resolve, 25)));
  onTestFinished(() => sync.mockRestore());
  // Two at once send each of them once.
  const resent = await Promise.all([engine.durable!.resend(), engine.durable!.resend()]);
  expect(resent[0] + resent[1]).toBe(ids.length);
  // One write for all, and one for the letters themselves.
  expect(sync.mock.calls.length).toBeLessThan(5);
  const others = setInterval(() => void engine.durable!.enqueue(getOrAdd(randomUUID())), 50);
  onTestFinished(() => clearInterval(others));
  await until('it to be refused', () => engine.stats().failed === 1);
  clearInterval(others);
  await engine.idle();
  expect(engine.durable!.dead.list().map(({ id }) => id)).toEqual(['bad']);
});
