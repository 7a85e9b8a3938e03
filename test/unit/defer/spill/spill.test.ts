import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { writeEntry } from '../../../../src/defer/durable/entry.js';
import { Segment } from '../../../../src/defer/spill/segment.js';
import { diskError } from '../../../fixtures/disk.js';
import { until } from '../../../fixtures/until.js';
import { getOrAdd } from '../durable-entry.js';
import { idsOf, spills } from './spill.fixture.js';

const { at, crash, left, open, park, placesOf, put, reports, segments, strike, take, takeAll } = spills();

/** A file of a process that is gone. */
function leaveBehind(name: string, text: string): void {
  const folder = join(at.root, '0af76519-16cd-43dd-8448-eb211c80319c');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, name), text);
}

describe('the spill', () => {
  it('says at the boot which option names a path that cannot be used, and what to do', async () => {
    const [file, link] = [join(at.folder, 'file'), join(at.folder, 'link')];
    writeFileSync(file, '');
    symlinkSync(at.folder, link);
    const useless = [file, link, join(file, 'below')];
    for (const path of useless) {
      const refusal = open({ path });
      await expect(refusal).rejects.toMatchObject({ code: 'PERF_ERR_STORE', cause: expect.any(Error) });
      await expect(refusal).rejects.toThrow(
        /^PERF_ERR_STORE: `spillPath` "\/.*" cannot be used: .* Name a folder that this process may write to;/,
      );
    }
  });

  it('makes folders and files that nobody else may read', async () => {
    const { spill } = await open();
    await put(spill, 'a-1');
    const names = readdirSync(at.root, { recursive: true }) as string[];
    const modes = ['.', ...names].map((name) => statSync(join(at.root, name)).mode & 0o077);
    expect(modes).toEqual([0, 0, 0, 0]);
  });

  it('has an entry on disk before append() resolves, readable by anyone who looks', async () => {
    const { spill } = await open();
    expect(await put(spill, 'a-1', { orderId: 'x\ny' })).toBe(true);
    expect(JSON.parse(readFileSync(segments()[0]!, 'utf8'))).toMatchObject({ id: 'a-1', data: { orderId: 'x\ny' } });
  });

  it('makes no file for each entry: one is written on up to 1 MiB, and none is left at the end', async () => {
    const { spill } = await open();
    const write = async (id: string, data?: string): Promise<void> => {
      await put(spill, id, data);
      strike(spill, id);
      await until('it to be struck off', () => left().length === 0);
    };
    for (let i = 0; i < 5; i++) await write(`a-${i}`);
    expect(segments()).toHaveLength(1);
    await write('large', 'x'.repeat(1024 * 1024));
    await until('its file to be removed', () => segments().length === 0);
    await write('after');
    expect(segments()).toHaveLength(1);
    await crash(spill);
    expect(readdirSync(at.root)).toEqual([]);
  });

  it('parks entries that memory has no room for and brings them back', async () => {
    const { spill } = await open();
    for (let i = 0; i < 5; i++) await put(spill, `a-${i}`);
    park(placesOf('a-2')[0]!);
    park(placesOf('a-4')[0]!);
    expect(spill.hasParked).toBe(true);
    expect(idsOf(await take(spill))).toEqual(['a-2', 'a-4']);
    expect(await take(spill)).toEqual([]);
    park(placesOf('a-4')[0]!);
    strike(spill, 'a-2');
    expect(idsOf(await take(spill))).toEqual(['a-4']);
  });

  it('never brings an entry back that is struck off while the file is being read', async () => {
    const { spill } = await open();
    const ids = Array.from({ length: 300 }, (_, i) => `a-${i}`);
    await Promise.all(ids.map((id) => put(spill, id)));
    for (const id of ids.slice(200)) park(placesOf(id)[0]!);
    const taken: string[] = [];
    const reading = (async () => {
      while (spill.hasParked) taken.push(...idsOf(await take(spill)));
    })();
    for (const id of ids.slice(0, 200)) {
      strike(spill, id);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await reading;
    expect(taken).toEqual(ids.slice(200));
  });

  it('writes to a new file when one is full, and deletes each when its last entry is struck off', async () => {
    const { spill } = await open();
    const big = 'x'.repeat(1024 * 1024);
    const ids = Array.from({ length: 20 }, (_, i) => `a-${i}`);
    for (const id of ids) await put(spill, id, big);
    expect(segments().length).toBeGreaterThanOrEqual(3);
    strike(spill, ...ids.slice(0, 8));
    await until('the first to be deleted', () => !segments().some((file) => file.endsWith('work-000001.ndjson')));
    for (const id of ids.slice(8)) park(placesOf(id)[0]!);
    expect(await takeAll(spill)).toEqual(ids.slice(8));
    strike(spill, ...ids.slice(8));
    await until('all to be removed', () => segments().length === 0);
  });

  it('gives back the room of what is stored where the disk is full of it', async () => {
    const { spill } = await open();
    for (const id of ['a-1', 'a-2']) await put(spill, id);
    const writeStrikes = vi.spyOn(Segment.prototype, 'writeStrikes').mockRejectedValue(diskError('ENOSPC'));
    strike(spill, 'a-1', 'a-2');
    await until('its file to be removed', () => segments().length === 0);
    writeStrikes.mockRestore();
  });

  it('holds no more than its bytes', async () => {
    const { spill } = await open({ maxBytes: 10_000 });
    const ids = Array.from({ length: 20 }, (_, i) => `a-${i}`);
    const written = [];
    for (const id of ids) written.push(await put(spill, id, 'x'.repeat(1_000)));
    expect(written.filter(Boolean).length).toBeGreaterThan(5);
    expect(written.filter(Boolean).length).toBeLessThan(11);
    expect(reports[0]).toMatch(/could not write: it holds \d+ bytes already \(spillMaxBytes\)/);
    strike(spill, ...ids);
    await until('it to be emptied', () => left().length === 0);
    expect(await put(spill, 'a-21')).toBe(true);
  });

  it('reads in slices: a large file does not hold the event loop', async () => {
    const lines = Array.from({ length: 30_000 }, (_, i) => writeEntry(getOrAdd(`a-${i}`, 'x'.repeat(100))));
    leaveBehind('work-000001.ndjson', lines.join(''));
    let turns = 0;
    const count = setInterval(() => (turns += 1), 0);
    const { spill, counted } = await open();
    expect((await takeAll(spill)).length).toBe(30_000);
    clearInterval(count);
    expect(turns).toBeGreaterThan(10);
    expect(counted.found).toBe(30_000);
  });

  it('reads no entry when it opens: files of other processes are read one after the other, when there is room', async () => {
    for (let n = 1; n <= 3; n++) {
      leaveBehind(`work-00000${n}.ndjson`, writeEntry(getOrAdd(`a-${n}`)));
    }
    const { spill, counted } = await open();
    expect([spill.entries, spill.unreadFiles, counted.found]).toEqual([0, 3, 0]);
    expect(idsOf(await take(spill))).toHaveLength(1);
    expect([spill.entries, spill.unreadFiles, counted.found]).toEqual([1, 2, 1]);
  });

  it('keeps what was refused for good, until it is sent again; the next process sends it', async () => {
    const first = await open();
    first.dead.add(getOrAdd('a-2'), 'Job a-2 exceeds the size limit');
    first.dead.add(getOrAdd('a-3'), 'no');
    expect(first.dead.list(0, 10)).toMatchObject([
      { id: 'a-2', error: 'Job a-2 exceeds the size limit', data: { id: 'a-2' }, rejectedAt: expect.any(Number) },
      { id: 'a-3' },
    ]);
    const taken = first.dead.take(['a-2'], 10);
    expect(taken.map(({ entry }) => entry.id)).toEqual(['a-2']);
    // Nobody else gets it meanwhile.
    expect(first.dead.take(['a-2'], 10)).toEqual([]);
    first.dead.delete(taken[0]!);
    expect(first.dead.list(-1, 10).map(({ id }) => id)).toEqual(['a-3']);
    await crash(first.spill);
    const { spill } = await open();
    expect(await takeAll(spill)).toEqual(['a-3']);
  });

  it('says that the disk refuses, does not keep a response waiting for it, and goes on when it takes again', async () => {
    const { spill } = await open();
    rmSync(at.folder, { recursive: true });
    expect(await put(spill, 'a-1')).toBe(false);
    expect(reports).toEqual([expect.stringMatching(/^spill: could not write: ENOENT/)]);
    mkdirSync(at.folder);
    expect(await put(spill, 'a-2')).toBe(true);
  });

  it('shares one write among entries that arrive together', async () => {
    const { spill } = await open();
    const results = await Promise.all(Array.from({ length: 500 }, (_, i) => put(spill, `a-${i}`)));
    expect(results.every(Boolean)).toBe(true);
    expect(readFileSync(segments()[0]!, 'utf8').trimEnd().split('\n')).toHaveLength(500);
  });
});
