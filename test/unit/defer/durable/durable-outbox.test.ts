import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryPlace, MemoryStore } from '../../../contract/memory-store.js';
import { until } from '../../../fixtures/until.js';
import { RequestWork } from '../../../../src/defer/request-work.js';
import { answered, engineWith } from '../engine.fixture.js';
import { entryOf, NO_WORKER } from '../durable-entry.js';
import { expectBalanced } from '../balanced.js';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'perf-outbox-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('durable work in front of a store that comes and goes', () => {
  it(
    'loses nothing to a small memory when there is a spill file, whatever the timing',
    { timeout: 120_000 },
    async () => {
      for (let round = 0; round < 30; round++) {
        const path = join(folder, `spill-${round}.ndjson`);
        const place = new MemoryPlace();
        place.away = round % 3 !== 0;
        const { engine } = engineWith({
          maxPending: 5,
          store: new MemoryStore(place, false, { path, maxBytes: 1024 ** 3 }),
        });
        await engine.durable!.start(NO_WORKER);
        const ids = Array.from({ length: 60 }, (_, i) => `r${round}-${i}`);
        const arming = ids.map(async (id, i) => {
          if (i % 4 === 0) await new Promise((resolve) => setTimeout(resolve, i % 7));
          const armed = engine.durable!.arm(entryOf(id), null, false);
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
        expect([...place.known].toSorted()).toEqual(ids.toSorted());
        expect(engine.durable!.capacity.isEmpty).toBe(true);
        await until('its files to be deleted', () => readdirSync(folder).every((name) => name.endsWith('.lock')));
        await engine.drain(100);
      }
    },
  );

  it('drop-old: what is on disk is not dropped for what the disk refuses', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const { engine } = engineWith({
      maxPending: 1,
      overflow: 'drop-old',
      store: new MemoryStore(place, false, { path: join(folder, 'spill'), maxBytes: 1 }),
    });
    await engine.durable!.start(NO_WORKER);
    for (const id of ['on-disk', 'refused']) {
      const armed = engine.durable!.arm(entryOf(id), null, false);
      armed?.commit(200);
      await armed?.written;
    }
    place.away = false;
    await engine.idle();
    expect([...place.known]).toEqual(['on-disk']);
    expect(engine.stats()).toMatchObject({ accepted: 2, stored: 1, dropped: 1, pending: 0 });
    await engine.drain(100);
  });

  it('drop-old: the oldest of all goes, whatever queue it is for', async () => {
    const place = new MemoryPlace();
    const { engine } = engineWith({
      maxPending: 2,
      overflow: 'drop-old',
      batch: { maxWaitMs: 100 },
      store: new MemoryStore(place, false),
    });
    const { durable } = engine;
    await durable!.start(NO_WORKER);
    const add = (id: string, queue: string): void => {
      const entry = entryOf(id);
      durable!.arm({ ...entry, options: { ...entry.options, queue } }, null, false)!.commit(200);
    };
    add('before', 'mail');
    await engine.idle();
    add('oldest', 'audit');
    add('older', 'mail');
    add('newest', 'audit');
    await engine.idle();
    expect([...place.known].toSorted()).toEqual(['before', 'newest', 'older']);
  });

  it('drop-old: what the own request has armed first goes, when nothing older waits', async () => {
    const place = new MemoryPlace();
    const { engine } = engineWith({ maxPending: 2, overflow: 'drop-old', store: new MemoryStore(place, false) });
    await engine.durable!.start(NO_WORKER);
    const request = new RequestWork(new Set());
    for (const id of ['a', 'b', 'c', 'd']) request.arm(engine.durable!.arm(entryOf(id), null, false, request)!);
    request.ended(answered);
    await engine.idle();
    expect([...place.known]).toEqual(['c', 'd']);
    expect(engine.stats()).toMatchObject({ accepted: 4, stored: 2, dropped: 2, pending: 0 });
  });

  it('what cannot be read from the disk for a while keeps its place, and no room is lost', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const path = join(folder, 'spill');
    const { engine, reports } = engineWith({
      maxPending: 2,
      store: new MemoryStore(place, false, { path, maxBytes: 1024 ** 2 }),
    });
    await engine.durable!.start(NO_WORKER);
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const id of ids) await engine.durable!.enqueue(entryOf(id));
    const file = await open(`${path}.1`);
    const noHandle = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    const read = vi.spyOn(Object.getPrototypeOf(file) as typeof file, 'read').mockRejectedValueOnce(noHandle);
    await file.close();
    place.away = false;
    await engine.idle();
    read.mockRestore();
    expect([...place.known].toSorted()).toEqual(ids);
    expect(engine.durable!.capacity.isEmpty).toBe(true);
    expect(reports.filter((report) => report.includes('EMFILE'))).toEqual([
      expect.stringContaining('spill file: could not read: EMFILE'),
    ]);
    await engine.drain(100);
  });

  it('a line that is damaged while it waits on disk is dropped and told, and nobody waits for it', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const path = join(folder, 'spill');
    const { engine, reports } = engineWith({
      maxPending: 1,
      store: new MemoryStore(place, false, { path, maxBytes: 1024 ** 2 }),
    });
    await engine.durable!.start(NO_WORKER);
    for (const id of ['a', 'b', 'c']) await engine.durable!.enqueue(entryOf(id));
    const file = `${path}.1`;
    const text = readFileSync(file, 'utf8');
    const disk = await open(file, 'r+');
    await disk.write(Buffer.alloc(20), 0, 20, text.lastIndexOf('\n', text.length - 2) + 1);
    await disk.close();
    place.away = false;
    await engine.idle();
    expect([...place.known].toSorted()).toEqual(['a', 'b']);
    expect(engine.stats()).toMatchObject({ accepted: 3, stored: 2, dropped: 1, pending: 0 });
    expectBalanced(engine.stats());
    expect(reports).toContain(
      `the spill file ${file} holds damaged lines: 1 were skipped, the others are sent. It is kept as ${file}.damaged.`,
    );
    await until('it to be put aside', () => readdirSync(folder).includes('spill.1.damaged'));
    await engine.drain(100);
  });

  it('reject: while the disk refuses, what has no room in memory is refused; it is asked again by itself', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const path = join(folder, 'spill');
    const { engine } = engineWith({
      maxPending: 1,
      overflow: 'reject',
      store: new MemoryStore(place, false, { path, maxBytes: 1024 ** 2 }),
    });
    const durable = engine.durable!;
    await durable.start(NO_WORKER);
    const arm = async (id: string): Promise<void> => {
      const armed = durable.arm(entryOf(id), null, false)!;
      await armed.written;
      armed.commit(200);
    };
    await arm('on disk');
    const file = await open(`${path}.1`);
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const write = vi.spyOn(Object.getPrototypeOf(file) as typeof file, 'appendFile').mockRejectedValue(full);
    await file.close();
    // Taken in before that is known.
    await arm('kept');
    expect(engine.capacityOf({ durable: true })).toBe(durable.capacity);
    await expect(arm('refused')).rejects.toThrow('PERF_ERR_DEFER_FULL');
    write.mockRestore();
    await until('the disk to be asked again', () => engine.capacityOf({ durable: true }) === null);
    await arm('on disk again');
    place.away = false;
    await engine.idle();
    expect([...place.known].toSorted()).toEqual(['kept', 'on disk', 'on disk again']);
    expect(engine.stats()).toMatchObject({ accepted: 3, stored: 3, failed: 0, dropped: 0 });
    expect(durable.capacity.isEmpty).toBe(true);
    await engine.drain(100);
  });

  it('what waits for a disk that cannot be read takes no room from what a disk refuses', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const path = join(folder, 'spill');
    const { engine } = engineWith({
      maxPending: 2,
      store: new MemoryStore(place, false, { path, maxBytes: 1024 ** 2 }),
    });
    const durable = engine.durable!;
    await durable.start(NO_WORKER);
    for (const id of ['a', 'b', 'c', 'd']) await durable.enqueue(entryOf(id));
    const file = await open(`${path}.1`);
    const handle = Object.getPrototypeOf(file) as typeof file;
    await file.close();
    const broken = Object.assign(new Error('i/o error'), { code: 'EIO' });
    const read = vi.spyOn(handle, 'read').mockRejectedValue(broken);
    const write = vi.spyOn(handle, 'appendFile').mockRejectedValue(broken);
    place.away = false;
    await until('what is in memory to be stored', () => place.known.size === 2);
    await until('the disk to be asked', () => read.mock.calls.length > 0);
    for (const id of ['e', 'f']) {
      const armed = durable.arm(entryOf(id), null, false)!;
      await armed.written;
      armed.commit(200);
    }
    await until('what the disk refuses to be stored', () => place.known.has('e') && place.known.has('f'));
    read.mockRestore();
    write.mockRestore();
    await engine.idle();
    expect(place.known.size).toBe(6);
    expect(engine.stats()).toMatchObject({ accepted: 6, stored: 6, dropped: 0, pending: 0 });
    expect(durable.capacity.isEmpty).toBe(true);
    await engine.drain(100);
  });

  it('what could not be stored before the deadline is told as durable, apart from what was not', async () => {
    const place = new MemoryPlace();
    place.away = true;
    const { engine, reports, defer } = engineWith({ store: new MemoryStore(place, false) });
    await engine.durable!.start(NO_WORKER);
    const enqueued = ['a', 'b'].map((id) => engine.durable!.enqueue(entryOf(id)).catch(() => {}));
    defer(() => new Promise(() => {}), { name: 'Audit' });
    await engine.drain(20);
    await Promise.all(enqueued);
    expect(reports.filter((text) => text.includes('were cut off'))).toEqual([
      '1 deferred tasks were cut off after 20 ms: Audit. Raise `defer.drainTimeoutMs`, or make the work durable.',
      '2 durable jobs that were not stored were cut off after 20 ms: receipt (2). Raise `defer.drainTimeoutMs`, or give the store a `spillPath`.',
    ]);
  });

  it('a boot that fails because the spill file is in use closes the store again', async () => {
    const path = join(folder, 'spill.ndjson');
    const first = engineWith({ store: new MemoryStore(new MemoryPlace(), false, { path, maxBytes: 1024 ** 3 }) });
    await first.engine.durable!.start(NO_WORKER);
    const place = new MemoryPlace();
    const second = engineWith({ store: new MemoryStore(place, true, { path, maxBytes: 1024 ** 3 }) });
    await expect(second.engine.durable!.start(NO_WORKER)).rejects.toThrow('PERF_ERR_STORE: `spillPath` is in use');
    expect(place.stores.size).toBe(0);
    await first.engine.drain(100);
  });
});
