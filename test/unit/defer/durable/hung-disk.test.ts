import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { DeferOptions } from '../../../../src/index.js';
import { MemoryPlace, MemoryStore } from '../../contract/memory-store.js';
import { diskError, handlePrototype, temporaryFolder } from '../../../fixtures/disk.js';
import { until } from '../../../fixtures/until.js';
import { getOrAdd, NO_WORKER } from '../durable-entry.js';
import { engineWith } from '../engine.fixture.js';

const WRITE_MS = 200;

/** A disk on which nothing is ever synced, until it is let go on. */
async function hangDisk(): Promise<() => void> {
  const waiting: (() => void)[] = [];
  const hang = vi
    .spyOn(await handlePrototype(), 'datasync')
    .mockImplementation(() => new Promise((resolve) => waiting.push(resolve)));
  onTestFinished(() => hang.mockRestore());
  return () => {
    hang.mockRestore();
    for (const resolve of waiting) resolve();
  };
}

async function start(options: DeferOptions = {}) {
  const place = new MemoryPlace();
  place.away = true;
  const path = join(temporaryFolder(), 'spill');
  const store = new MemoryStore(place, false, { path, maxBytes: 1024 ** 2, writeTimeoutMs: WRITE_MS });
  const { engine, reports } = engineWith({ ...options, store });
  await engine.durable!.start(NO_WORKER);
  onTestFinished(() => engine.drain(100));
  const arm = (id: string) => engine.durable!.arm(getOrAdd(id), null)!;
  return { engine, reports, place, arm };
}

it('an answer waits for a disk that hangs no longer than `writeTimeoutMs`, and the work goes on in memory', async () => {
  const { engine, reports, place, arm } = await start();
  const goOn = await hangDisk();
  const [first, second] = [arm('a'), arm('b')];
  expect(await Promise.all([first.written, second.written])).toEqual([null, null]);
  expect(reports).toEqual([expect.stringContaining(`the disk has not answered within ${WRITE_MS} ms`)]);
  // Whoever comes later does not wait at all: `written` needs no turn of the disk.
  const third = arm('c');
  const turn = new Promise((resolve) => setTimeout(() => resolve('late'), WRITE_MS / 2));
  expect(await Promise.race([third.written, turn])).toBeNull();
  for (const armed of [first, second, third]) armed.commit(200);
  place.away = false;
  await engine.idle();
  expect([...place.known].toSorted()).toEqual(['a', 'b', 'c']);
  goOn();
  const durable = engine.durable!;
  await until('the disk to be used again', () => !durable.lacksDisk);
  const last = arm('d');
  await last.written;
  expect(durable.onDisk.entries).toBeGreaterThan(0);
  last.commit(200);
  await engine.idle();
  await until('what was written late to be struck off', () => durable.onDisk.entries === 0);
});

it('with `reject` the route is told, so that it answers 503', async () => {
  const { engine, arm } = await start({ overflow: 'reject' });
  await hangDisk();
  const armed = arm('a');
  expect(await armed.written).toMatchObject({ code: 'PERF_ERR_DEFER_FULL' });
  armed.discard();
  expect(engine.stats()).toMatchObject({ accepted: 0 });
});

it.each(['datasync', 'appendFile', 'truncate'] as const)(
  'app.close() ends within its deadline while %s hangs',
  async (method) => {
    const { engine, arm } = await start();
    const before = arm('a');
    await before.written;
    before.commit(200);
    const hang = vi
      .spyOn(await handlePrototype(), method as 'datasync')
      .mockImplementation(() => new Promise(() => {}));
    onTestFinished(() => hang.mockRestore());
    arm('b').commit(200);
    let isDrained = false;
    const drained = engine.drain(300).then(() => (isDrained = true));
    await until('it to end', () => isDrained, 15_000);
    await drained;
  },
);

it('while one step on the disk hangs no other begins: each would take one of Node’s four threads', async () => {
  const { engine, place, arm } = await start({ maxPending: 1 });
  const [sent, parked] = [arm('sent'), arm('parked')];
  await Promise.all([sent.written, parked.written]);
  for (const armed of [sent, parked]) armed.commit(200);
  const prototype = await handlePrototype();
  const append = vi.spyOn(prototype, 'appendFile').mockImplementation(() => new Promise(() => {}));
  const read = vi.spyOn(prototype, 'read').mockImplementation(() => new Promise(() => {}) as never);
  onTestFinished(() => [append, read].forEach((spy) => spy.mockRestore()));
  arm('hangs');
  await until('it to be written', () => append.mock.calls.length === 1);
  engine.durable!.dead.add(getOrAdd('dead'), 'refused');
  // Memory has room again: the other one would be read.
  place.away = false;
  await until('the first to be stored', () => place.known.has('sent'));
  await new Promise((resolve) => setImmediate(resolve));
  expect([append.mock.calls.length, read.mock.calls.length]).toEqual([1, 0]);
});

it('a disk that was full is tried again after a second, also for work that has no room in memory', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { engine, arm } = await start({ maxPending: 1 });
  const append = vi.spyOn(await handlePrototype(), 'appendFile').mockRejectedValue(diskError('ENOSPC'));
  onTestFinished(() => append.mockRestore());
  expect(await arm('in memory').written).toBeNull();
  expect(arm('dropped')).toBeNull();
  append.mockRestore();
  vi.advanceTimersByTime(1_000);
  await arm('on disk').written;
  expect(engine.durable!.onDisk.entries).toBe(1);
});

it('whoever looks at dead letters waits for no disk', async () => {
  const { engine, place, arm } = await start();
  place.away = false;
  place.refused.add('bad');
  const bad = arm('bad');
  bad.commit(200);
  const others = setInterval(() => arm(`good-${Math.random()}`).commit(200), 50);
  onTestFinished(() => clearInterval(others));
  await until('it to be refused', () => engine.durable!.dead.list().length === 1);
  clearInterval(others);
  const read = vi.spyOn(await handlePrototype(), 'read').mockImplementation(() => new Promise(() => {}) as never);
  onTestFinished(() => read.mockRestore());
  const armed = arm('beside');
  await armed.written;
  armed.commit(200);
  await until('durable work to go on', () => place.known.has('beside'));
  expect(engine.durable!.dead.list()).toMatchObject([{ id: 'bad' }]);
});
