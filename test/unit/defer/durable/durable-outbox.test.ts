import { readdirSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { MemoryPlace, MemoryStore } from '../../contract/memory-store.js';
import { diskError, handlePrototype, temporaryFolder } from '../../../fixtures/disk.js';
import { spilledIn, workFiles } from '../../../fixtures/spilled.js';
import { until } from '../../../fixtures/until.js';
import type { DeferOptions } from '../../../../src/index.js';
import { RequestWork } from '../../../../src/defer/request-work.js';
import { answered, engineWith } from '../engine.fixture.js';
import { getOrAdd, NO_WORKER } from '../durable-entry.js';
import { expectBalanced } from '../balanced.js';

interface Given extends DeferOptions {
  /** The store is, until `place.away` is false. */
  away?: boolean;
  /** Of a spill, which there is then. */
  spillBytes?: number;
}
async function start({ away = false, spillBytes, ...options }: Given) {
  const place = new MemoryPlace();
  place.away = away;
  const path = join(temporaryFolder(), 'spill');
  const store = new MemoryStore(place, false, spillBytes === undefined ? null : { path, maxBytes: spillBytes });
  const { engine, ...more } = engineWith({ ...options, store });
  const durable = engine.durable!;
  await durable.start(NO_WORKER);
  onTestFinished(() => engine.drain(100));
  const add = async (id: string): Promise<void> => {
    const armed = durable.arm(getOrAdd(id), null);
    await armed?.written;
    armed?.commit(200);
  };
  const known = (): string[] => [...place.known].toSorted();
  return { engine, durable, place, path, add, known, ...more };
}
const MIB = 1024 ** 2;

describe('durable work in front of a store that comes and goes', () => {
  afterEach(() => void vi.restoreAllMocks());

  it(
    'loses nothing to a small memory when there is a spill file, whatever the timing',
    { timeout: 120_000 },
    async () => {
      for (let round = 0; round < 30; round++) {
        const { engine, durable, place, path, known } = await start({
          away: round % 3 !== 0,
          spillBytes: 1024 * MIB,
          maxPending: 5,
        });
        const ids = Array.from({ length: 60 }, (_, i) => `r${round}-${i}`);
        const arming = ids.map(async (id, i) => {
          if (i % 4 === 0) await new Promise((resolve) => setTimeout(resolve, i % 7));
          const armed = durable.arm(getOrAdd(id), null);
          await armed?.written;
          if (i % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
          armed?.commit(200);
        });
        await new Promise((resolve) => setTimeout(resolve, round % 5));
        place.away = false;
        await Promise.all(arming);
        await engine.idle();
        expectBalanced(engine.stats());
        expect(engine.stats()).toMatchObject({ accepted: 60, stored: 60, dropped: 0, buffered: 0 });
        expect(known()).toEqual(ids.toSorted());
        expect(durable.room.isEmpty).toBe(true);
        await until('all to be struck off', () => spilledIn(path).ids.length === 0);
      }
    },
  );

  it('what still waits for its response is not sent with what stands beside it on disk', async () => {
    const { engine, durable, place, path, add, known } = await start({ away: true, spillBytes: MIB, maxPending: 1 });
    await add('in memory');
    const [discarded, late] = [durable.arm(getOrAdd('discarded'), null)!, durable.arm(getOrAdd('late'), null)!];
    await Promise.all([discarded.written, late.written]);
    await add('on disk');
    place.away = false;
    await engine.idle();
    expect(known()).toEqual(['in memory', 'on disk']);
    discarded.discard();
    late.commit(200);
    await engine.idle();
    expect(known()).toEqual(['in memory', 'late', 'on disk']);
    expect(engine.stats()).toMatchObject({ accepted: 3, stored: 3, dropped: 0, buffered: 0 });
    expect(durable.room.isEmpty).toBe(true);
    await until('all to be struck off', () => spilledIn(path).ids.length === 0);
  });

  it('drop-old: what is on disk is not dropped for what the disk refuses', async () => {
    const { engine, place, add, known } = await start({
      away: true,
      spillBytes: 1,
      maxPending: 1,
      overflow: 'drop-old',
    });
    for (const id of ['on-disk', 'refused']) await add(id);
    place.away = false;
    await engine.idle();
    expect(known()).toEqual(['on-disk']);
    expect(engine.stats()).toMatchObject({ accepted: 2, stored: 1, dropped: 1, pending: 0 });
  });

  it('drop-old: the oldest of all goes, whatever queue it is for', async () => {
    const { engine, durable, known } = await start({ maxPending: 2, overflow: 'drop-old', batch: { maxWaitMs: 100 } });
    const add = (id: string, queue: string): void => {
      const entry = getOrAdd(id);
      durable.arm({ ...entry, options: { ...entry.options, queue } }, null)!.commit(200);
    };
    add('before', 'mail');
    await engine.idle();
    add('oldest', 'audit');
    add('older', 'mail');
    add('newest', 'audit');
    await engine.idle();
    expect(known()).toEqual(['before', 'newest', 'older']);
  });

  it('drop-old: what the own request has armed first goes, when nothing older waits', async () => {
    const { engine, durable, known } = await start({ maxPending: 2, overflow: 'drop-old' });
    const request = new RequestWork(new Set());
    for (const id of ['a', 'b', 'c', 'd']) request.arm(durable.arm(getOrAdd(id), null)!);
    request.ended(answered);
    await engine.idle();
    expect(known()).toEqual(['c', 'd']);
    expect(engine.stats()).toMatchObject({ accepted: 4, stored: 2, dropped: 2, pending: 0 });
  });

  it('what cannot be read from the disk for a while keeps its place, and no room is lost', async () => {
    const { engine, durable, place, known, reports } = await start({ away: true, spillBytes: MIB, maxPending: 2 });
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const id of ids) await durable.enqueue(getOrAdd(id));
    vi.spyOn(await handlePrototype(), 'read').mockRejectedValueOnce(diskError('EMFILE'));
    place.away = false;
    await engine.idle();
    expect(known()).toEqual(ids);
    expect(durable.room.isEmpty).toBe(true);
    expect(reports.filter((report) => report.includes('EMFILE'))).toEqual([
      expect.stringContaining('spill: could not read: EMFILE'),
    ]);
  });

  it('what is on disk takes no memory, also while its request goes on', async () => {
    const { durable } = await start({ away: true, spillBytes: MIB * 512, maxPending: 1 });
    const request = new RequestWork(new Set());
    const [count, bytes] = [30, MIB];
    const heldBytes = (): number => {
      gc!();
      return process.memoryUsage().heapUsed;
    };
    const before = heldBytes();
    for (let i = 0; i < count; i++) {
      const armed = durable.arm(getOrAdd(`e-${i}`, `${i}`.padEnd(bytes, 'x')), null)!;
      request.arm(armed);
      await armed.written;
    }
    expect(heldBytes() - before).toBeLessThan((count * bytes) / 2);
    expect(request.size).toBe(count);
  });

  it('what is taken back from the disk leaves the event loop its turns', async () => {
    const first = await start({ away: true, spillBytes: MIB * 8 });
    await Promise.all(Array.from({ length: 5_000 }, (_, i) => first.durable.enqueue(getOrAdd(`e-${i}`))));
    await first.engine.drain(0);
    const store = new MemoryStore(first.place, false, { path: first.path, maxBytes: MIB * 8 });
    const { engine } = engineWith({ store, maxPending: 5_000 });
    const { room } = engine.durable!;
    let [most, left, isOver] = [0, room.left, false];
    const look = (): void => {
      most = Math.max(most, left - room.left);
      ({ left } = room);
      if (!isOver) setImmediate(look);
    };
    look();
    onTestFinished(() => engine.drain(100));
    await engine.durable!.start(NO_WORKER);
    await until('all to be taken back', () => room.left === 0);
    isOver = true;
    expect(most).toBeLessThanOrEqual(1_000);
  });

  it('a line that is damaged while it waits on disk is dropped and told, and nobody waits for it', async () => {
    const { engine, durable, place, path, known, reports } = await start({
      away: true,
      spillBytes: MIB,
      maxPending: 1,
    });
    for (const id of ['a', 'b', 'c']) await durable.enqueue(getOrAdd(id));
    const [file] = workFiles(path) as [string];
    const text = readFileSync(file, 'utf8');
    const disk = await open(file, 'r+');
    await disk.write(Buffer.alloc(20), 0, 20, text.lastIndexOf('\n', text.length - 2) + 1);
    await disk.close();
    place.away = false;
    await engine.idle();
    expect(known()).toEqual(['a', 'b']);
    expect(engine.stats()).toMatchObject({ accepted: 3, stored: 2, dropped: 1, pending: 0 });
    expectBalanced(engine.stats());
    expect(reports).toContain(
      `${file} holds damaged lines: they are passed over, the others are sent. The file is kept.`,
    );
    await until('it to be put aside', () => readdirSync(path).some((name) => name.startsWith('damaged-')));
  });

  it('reject: what the disk refuses is said to the route that waits, kept where there is room, and refused where there is none', async () => {
    const { engine, durable, place, add, known } = await start({
      away: true,
      spillBytes: MIB,
      maxPending: 2,
      overflow: 'reject',
    });
    await add('on disk');
    const write = vi.spyOn(await handlePrototype(), 'appendFile').mockRejectedValue(diskError('ENOSPC'));
    const kept = durable.arm(getOrAdd('kept'), null)!;
    expect(await kept.written).toMatchObject({ code: 'PERF_ERR_DEFER_FULL' });
    kept.commit(200);
    await until('it to be kept', () => durable.room.left === 0);
    await expect(add('refused')).rejects.toThrow('PERF_ERR_DEFER_FULL');
    write.mockRestore();
    place.away = false;
    await engine.idle();
    await add('on disk again');
    await engine.idle();
    expect(known()).toEqual(['kept', 'on disk', 'on disk again']);
    expect(engine.stats()).toMatchObject({ accepted: 3, stored: 3, failed: 0, dropped: 0 });
    expect(durable.room.isEmpty).toBe(true);
  });

  it('what waits for a disk that cannot be read takes no room from what a disk refuses', async () => {
    const { engine, durable, place, add } = await start({ away: true, spillBytes: MIB, maxPending: 2 });
    for (const id of ['a', 'b', 'c', 'd']) await durable.enqueue(getOrAdd(id));
    const handle = await handlePrototype();
    const read = vi.spyOn(handle, 'read').mockRejectedValue(diskError('EIO'));
    vi.spyOn(handle, 'appendFile').mockRejectedValue(diskError('EIO'));
    place.away = false;
    await until('what is in memory to be stored', () => place.known.size === 2);
    await until('the disk to be asked', () => read.mock.calls.length > 0);
    for (const id of ['e', 'f']) await add(id);
    await until('what the disk refuses to be stored', () => place.known.has('e') && place.known.has('f'));
    vi.restoreAllMocks();
    await engine.idle();
    expect(place.known.size).toBe(6);
    expect(engine.stats()).toMatchObject({ accepted: 6, stored: 6, dropped: 0, pending: 0 });
    expect(durable.room.isEmpty).toBe(true);
  });

  it('what could not be stored before the deadline is told as durable, apart from what was not', async () => {
    const { engine, durable, reports, defer } = await start({ away: true });
    const enqueued = ['a', 'b'].map((id) => durable.enqueue(getOrAdd(id)).catch(() => {}));
    defer(() => new Promise(() => {}), { name: 'Audit' });
    await engine.drain(20);
    await Promise.all(enqueued);
    expect(reports.filter((text) => text.includes(' has cut off '))).toEqual([
      'The shutdown has cut off 1 deferred task after 20 ms: Audit. Raise `defer.drainTimeoutMs`, or make the work durable.',
      'The shutdown has cut off 2 unstored durable jobs after 20 ms: receipt (2). Raise `defer.drainTimeoutMs`, or give the store a `spillPath`.',
    ]);
  });

  it.each([
    ['closes', 'PERF_ERR_STORE', 'the application closed before it was done'],
    ['needs its place', 'PERF_ERR_DEFER_FULL', 'newer work took its place'],
  ])('enqueue() rejects with a code where the application %s before it is stored', async (what, code, why) => {
    const { engine, durable, add } = await start({ away: true, maxPending: 1, overflow: 'drop-old' });
    const enqueued = durable.enqueue(getOrAdd('a')).catch((error: unknown) => error);
    await (what === 'closes' ? engine.drain(0) : add('b'));
    const message = `${code}: "receipt" was not stored: ${why}.`;
    expect(await enqueued).toMatchObject({ name: 'PerfError', code, message });
  });

  it('a store that owes its answer for 30 s gets the jobs again, and a late answer changes nothing', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { engine, durable } = await start({});
      const answers: (() => void)[] = [];
      durable.target.add = () => new Promise<void>((resolve) => answers.push(resolve));
      durable.arm(getOrAdd('a'), null)!.commit(200);
      await vi.advanceTimersByTimeAsync(29_000);
      expect(answers).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(3_000);
      expect(answers).toHaveLength(2);
      answers[0]!();
      await vi.advanceTimersByTimeAsync(1);
      expect(engine.stats()).toMatchObject({ pending: 1, stored: 0 });
      answers[1]!();
      await vi.advanceTimersByTimeAsync(1);
      expect(engine.stats()).toMatchObject({ pending: 0, stored: 1 });
    } finally {
      vi.useRealTimers();
    }
  });

  it('two applications share one path, and each sends its own', async () => {
    const { durable, path, known, place } = await start({ spillBytes: MIB, away: true });
    await durable.enqueue(getOrAdd('mine'));
    const other = engineWith({ store: new MemoryStore(place, true, { path, maxBytes: MIB }) });
    await other.engine.durable!.start(NO_WORKER);
    onTestFinished(() => other.engine.drain(100));
    await other.engine.durable!.enqueue(getOrAdd('theirs'));
    expect(other.engine.stats()).toMatchObject({ accepted: 1 });
    place.away = false;
    await until('both', () => known().length === 2);
  });

  it('a boot that fails because the disk refuses closes the store again', async () => {
    const place = new MemoryPlace();
    const second = engineWith({
      store: new MemoryStore(place, true, { path: `${process.execPath}/spill`, maxBytes: MIB }),
    });
    await expect(second.engine.durable!.start(NO_WORKER)).rejects.toThrow('PERF_ERR_STORE: `spillPath`');
    expect(place.stores.size).toBe(0);
  });
});
