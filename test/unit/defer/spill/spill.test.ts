import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { lineOf } from '../../../../src/defer/spill/line.js';
import { Segment } from '../../../../src/defer/spill/segment.js';
import { diskError } from '../../../fixtures/disk.js';
import { until } from '../../../fixtures/until.js';
import { entryOf } from '../durable-entry.js';
import { idsOf, spills } from './spill.fixture.js';

const { at, crash, open, placesOf, put, reports, segments, strike, take, takeAll } = spills();

describe('the spill', () => {
  it('says at the boot which option names a path that cannot be used, and what to do', async () => {
    writeFileSync(join(at.folder, 'file'), '');
    mkdirSync(`${at.file}.1`);
    const useless = [at.file, join(at.folder, 'file/below'), ...(existsSync('/proc/self') ? ['/proc/none/below'] : [])];
    for (const path of useless) {
      const refusal = open(path);
      await expect(refusal).rejects.toMatchObject({ code: 'PERF_ERR_STORE', cause: { code: expect.any(String) } });
      await expect(refusal).rejects.toThrow(
        /^PERF_ERR_STORE: `spillPath` "\/.*" cannot be used: E[A-Z]+: .* Name a path in a folder that this process may write to;/,
      );
    }
  });

  it('has an entry on disk before append() resolves, readable by anyone who looks', async () => {
    const { spill } = await open();
    expect(await put(spill, 'a-1', { orderId: 'x\ny' })).toBe(true);
    expect(JSON.parse(readFileSync(`${at.file}.1`, 'utf8'))).toMatchObject({ id: 'a-1', data: { orderId: 'x\ny' } });
  });

  it('leaves no file behind when everything is struck off', async () => {
    const { spill } = await open();
    await Promise.all([put(spill, 'a-1'), put(spill, 'a-2')]);
    strike(spill, 'a-1');
    strike(spill, 'a-2');
    await until('its file to be deleted', () => segments().length === 0);
    expect(await put(spill, 'a-3')).toBe(true);
  });

  it('parks entries that memory has no room for and brings them back', async () => {
    const { spill } = await open();
    for (let i = 0; i < 5; i++) await put(spill, `a-${i}`);
    spill.park(placesOf('a-2')[0]!);
    spill.park(placesOf('a-4')[0]!);
    expect(spill.parked).toBe(2);
    expect(idsOf(await take(spill, 10))).toEqual(['a-2', 'a-4']);
    expect(await take(spill, 10)).toEqual([]);
    spill.park(placesOf('a-4')[0]!);
    strike(spill, 'a-2');
    expect(idsOf(await take(spill, 10))).toEqual(['a-4']);
  });

  it('never brings an entry back that is struck off while the file is being read', async () => {
    const { spill } = await open();
    const ids = Array.from({ length: 300 }, (_, i) => `a-${i}`);
    await Promise.all(ids.map((id) => put(spill, id)));
    for (const id of ids.slice(200)) spill.park(placesOf(id)[0]!);
    const taken: string[] = [];
    const reading = (async () => {
      while (spill.parked > 0) taken.push(...idsOf(await take(spill, 5)));
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
    await until('the first to be deleted', () => !segments().includes('spill.ndjson.1'));
    for (const id of ids.slice(8)) spill.park(placesOf(id)[0]!);
    expect(await takeAll(spill)).toEqual(ids.slice(8));
    strike(spill, ...ids.slice(8));
    await until('all to be deleted', () => segments().length === 0);
  });

  it('gives back the room of what is stored where the disk is full of it', async () => {
    const { spill } = await open();
    for (const id of ['a-1', 'a-2']) await put(spill, id);
    const writeStrikes = vi.spyOn(Segment.prototype, 'writeStrikes').mockRejectedValue(diskError('ENOSPC'));
    strike(spill, 'a-1', 'a-2');
    await until('its file to be deleted', () => segments().length === 0);
    writeStrikes.mockRestore();
  });

  it('holds no more than its bytes', async () => {
    const { spill } = await open(at.file, 10_000);
    const ids = Array.from({ length: 20 }, (_, i) => `a-${i}`);
    const written = [];
    for (const id of ids) written.push(await put(spill, id, 'x'.repeat(1_000)));
    expect(written.filter(Boolean).length).toBeGreaterThan(5);
    expect(written.filter(Boolean).length).toBeLessThan(11);
    expect(reports[0]).toMatch(/could not write: it holds \d+ bytes already \(spillMaxBytes\)/);
    strike(spill, ...ids);
    await until('it to be emptied', () => segments().length === 0);
    expect(await put(spill, 'a-21')).toBe(true);
  });

  it('reads in slices: a large file does not hold the event loop', async () => {
    const lines = Array.from({ length: 30_000 }, (_, i) => lineOf(entryOf(`a-${i}`, 'x'.repeat(100))));
    writeFileSync(`${at.file}.1`, lines.join(''));
    let turns = 0;
    const count = setInterval(() => (turns += 1), 0);
    const { spill } = await open();
    expect((await takeAll(spill)).length).toBe(30_000);
    clearInterval(count);
    expect(turns).toBeGreaterThan(20);
  });

  it('keeps what was refused for good, until it is sent again', async () => {
    const first = await open();
    for (const id of ['a-1', 'a-2', 'a-3']) await put(first.spill, id);
    await first.spill.reject(entryOf('a-2'), placesOf('a-2')[0]!, 'Job a-2 exceeds the size limit');
    await first.spill.reject(entryOf('a-3'), placesOf('a-3')[0]!, 'no');
    await crash(first.spill);
    const { spill, left } = await open();
    expect(left).toBe(1);
    const rejected = await spill.rejected();
    expect(rejected).toMatchObject([
      { id: 'a-2', error: 'Job a-2 exceeds the size limit', json: '{"id":"a-2"}' },
      { id: 'a-3' },
    ]);
    expect(rejected[0]!.rejectedAt).toBeGreaterThan(Date.now() - 60_000);
    await spill.forgetRejected(new Set(['a-2']));
    expect((await spill.rejected()).map(({ id }) => id)).toEqual(['a-3']);
  });

  it('is in the folder when its path is one', async () => {
    const { spill } = await open(at.folder);
    await put(spill, 'a-1');
    expect(readdirSync(at.folder).toSorted()).toEqual(['deferred.ndjson.1', 'deferred.ndjson.lock']);
  });

  it('says that the disk refuses, does not keep a response waiting for it, and goes on when it takes again', async () => {
    const { spill } = await open();
    rmSync(at.folder, { recursive: true });
    expect(await put(spill, 'a-1')).toBe(false);
    expect(reports).toEqual([expect.stringMatching(/^spill file: could not write: ENOENT.*in memory only/)]);
    mkdirSync(at.folder);
    expect(await put(spill, 'a-2')).toBe(true);
  });

  it('shares one write among entries that arrive together', async () => {
    const { spill } = await open();
    const results = await Promise.all(Array.from({ length: 500 }, (_, i) => put(spill, `a-${i}`)));
    expect(results.every(Boolean)).toBe(true);
    expect(readFileSync(`${at.file}.1`, 'utf8').trimEnd().split('\n')).toHaveLength(500);
  });
});
