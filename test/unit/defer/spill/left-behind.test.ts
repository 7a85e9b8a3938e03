import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../../fixtures/until.js';
import { idsOf, spills } from './spill.fixture.js';

const { at, crash, left, open, put, reports, segments, strike, take, takeAll } = spills();

describe('what an earlier process has left in a spill', () => {
  it('gives an earlier process’ entries back, oldest first, without those struck off', async () => {
    const first = await open();
    for (let i = 0; i < 10; i++) await put(first.spill, `a-${i}`, i === 3 ? null : { i });
    strike(first.spill, 'a-0', 'a-5');
    await crash(first.spill);
    expect(left()).toHaveLength(8);
    const second = await open();
    const all = await take(second.spill);
    expect(idsOf(all)).toEqual(['a-1', 'a-2', 'a-3', 'a-4', 'a-6', 'a-7', 'a-8', 'a-9']);
    expect(all.slice(0, 3).map(({ entry: { json } }) => json)).toEqual(['{"i":1}', '{"i":2}', undefined]);
    expect(second.spill.hasParked).toBe(false);
    expect(second.counted.found).toBe(8);
    strike(second.spill, 'a-1', 'a-2', 'a-3', 'a-4', 'a-6', 'a-7', 'a-8', 'a-9');
    await until('the old file to be deleted', () => segments().length === 0);
  });

  it('survives any number of crashes without losing an entry', async () => {
    for (let boot = 0; boot < 4; boot++) {
      const { spill } = await open();
      expect(spill.unreadFiles).toBe(boot);
      await put(spill, `boot-${boot}`);
      await crash(spill);
    }
    const { spill } = await open();
    expect((await takeAll(spill)).toSorted()).toEqual(['boot-0', 'boot-1', 'boot-2', 'boot-3']);
  });

  it('passes over a line that a crash has torn: its response was never sent', async () => {
    const first = await open();
    await put(first.spill, 'a-1');
    await crash(first.spill);
    appendFileSync(segments()[0]!, '{"id":"a-2","work":"SendRec');
    const second = await open();
    await put(second.spill, 'a-3');
    await crash(second.spill);
    const third = await open();
    expect((await takeAll(third.spill)).toSorted()).toEqual(['a-1', 'a-3']);
    expect(reports).toEqual([]);
  });

  it.each([
    ['in the middle', '{"id":"a-3","work":"SendRec'],
    ['before its newline', '{"id":"a-3","work":"SendReceipt"}'],
  ])('remembers what is struck off behind a line that was torn %s', async (_where, torn) => {
    const first = await open();
    for (const id of ['a-1', 'a-2']) await put(first.spill, id);
    await crash(first.spill);
    appendFileSync(segments()[0]!, torn);
    const second = await open();
    const taken = await take(second.spill);
    second.spill.strike(taken.filter(({ entry: { id } }) => id === 'a-1').map(({ place }) => place));
    await crash(second.spill);
    const third = await open();
    expect(await takeAll(third.spill)).toEqual(['a-2']);
    expect(reports).toEqual([]);
  });

  it('sends the others of a file with a damaged line, says so, and keeps the file', async () => {
    const first = await open();
    for (const id of ['a-1', 'a-2', 'a-3']) await put(first.spill, id);
    await crash(first.spill);
    const [file] = segments();
    writeFileSync(file!, readFileSync(file!, 'utf8').replace('"id":"a-2"', '"id:"a-2"'));
    const { spill } = await open();
    expect(await takeAll(spill)).toEqual(['a-1', 'a-3']);
    expect(reports).toEqual([expect.stringContaining('holds damaged lines')]);
    strike(spill, 'a-1', 'a-3');
    await until('it to be put aside', () => readdirSync(at.root).some((name) => name.startsWith('damaged-')));
  });

  it.each(['', '"together":{},', '"together":{"maxItems":0,"maxWaitMs":5},', '"together":7,'])(
    'passes over a line that names no bulk: %s',
    async (together) => {
      const first = await open();
      for (const id of ['a-1', 'a-2']) await put(first.spill, id);
      await crash(first.spill);
      const [file] = segments();
      const lines = readFileSync(file!, 'utf8').split('\n');
      writeFileSync(file!, [lines[0]!.replace('"together":null,', together), ...lines.slice(1)].join('\n'));
      const { spill } = await open();
      expect(await takeAll(spill)).toEqual(['a-2']);
      expect(reports).toEqual([expect.stringContaining('holds damaged lines')]);
    },
  );

  it('keeps each damaged file: a later one takes no name of theirs', async () => {
    for (let boot = 0; boot < 2; boot++) {
      const first = await open();
      await put(first.spill, `a-${boot}`);
      await crash(first.spill);
      appendFileSync(segments()[0]!, `what is damaged in boot ${boot}\n`);
      const { spill } = await open();
      await takeAll(spill);
      strike(spill, `a-${boot}`);
      await until('it to be put aside', () => segments().length === 0);
      await crash(spill);
    }
    const kept = readdirSync(at.root).filter((name) => name.startsWith('damaged-'));
    const texts = kept.map((name) => readFileSync(join(at.root, name), 'utf8'));
    expect(texts.toSorted((a, b) => a.indexOf('boot') - b.indexOf('boot') || a.localeCompare(b))).toEqual([
      expect.stringContaining('in boot 0'),
      expect.stringContaining('in boot 1'),
    ]);
  });

  const probe = mkdtempSync(join(tmpdir(), 'perf-mount-'));
  const canMount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', probe]).status === 0;
  if (canMount) spawnSync('umount', [probe]);
  it.skipIf(!canMount)('loses nothing to a full disk, and leaves no torn line in front of the next', async () => {
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', at.folder]);
    try {
      const first = await open();
      const written: string[] = [];
      for (let i = 0; i < 40; i++) {
        if (await put(first.spill, `a-${i}`, 'x'.repeat(3_000))) written.push(`a-${i}`);
      }
      expect(reports[0]).toContain('could not write: ENOSPC');
      expect(written.length).toBeLessThan(40);
      spawnSync('mount', ['-o', 'remount,size=1m', at.folder]);
      expect(await put(first.spill, 'after')).toBe(true);
      await crash(first.spill);
      const { spill } = await open();
      expect((await takeAll(spill)).toSorted()).toEqual([...written, 'after'].toSorted());
      expect(reports.filter((report) => report.includes('damaged'))).toEqual([]);
      await crash(spill);
    } finally {
      spawnSync('umount', [at.folder]);
    }
  });

  it.skipIf(!canMount)('boots on a full disk, and takes over and writes once it has room', async () => {
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', at.folder]);
    try {
      const first = await open();
      await put(first.spill, 'before');
      await crash(first.spill);
      expect(() => writeFileSync(join(at.folder, 'other'), Buffer.alloc(100_000))).toThrow('ENOSPC');
      const { spill, adopt } = await open();
      expect(await put(spill, 'full')).toBe(false);
      expect(reports[0]).toMatch(/^the disk of `spillPath` ".*" is full: durable work is in memory only/);
      expect(readdirSync(at.root)).toHaveLength(1);
      spawnSync('mount', ['-o', 'remount,size=1m', at.folder]);
      await adopt();
      expect(await put(spill, 'after')).toBe(true);
      expect(await takeAll(spill)).toEqual(['before']);
      await crash(spill);
    } finally {
      spawnSync('umount', [at.folder]);
    }
  });
});
