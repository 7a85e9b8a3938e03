import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DurableEntry } from '../../../../src/defer/durable/durable-entry.js';
import { Segment, type Place } from '../../../../src/defer/spill/segment.js';
import { Spill } from '../../../../src/defer/spill/spill.js';
import { until } from '../../../fixtures/until.js';
import { entryOf } from '../durable-entry.js';

const LONG = process.env['PERF_LONG'] !== undefined;

let folder: string;
let file: string;
const reports: string[] = [];
const opened: Spill[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perf-spill-'));
  file = join(folder, 'spill.ndjson');
  reports.length = 0;
});
afterEach(async () => {
  for (const spill of opened.splice(0)) await spill.close().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

async function open(path = file, maxBytes = 1024 ** 3): Promise<{ spill: Spill; left: number }> {
  const spill = new Spill({ path, maxBytes });
  const left = await spill.open((_, message) => reports.push(message));
  opened.push(spill);
  return { spill, left };
}
/** What a crash leaves: the files as they are, the handles gone, the lock of a process that no longer exists. */
async function crash(spill: Spill): Promise<void> {
  opened.splice(opened.indexOf(spill), 1);
  await spill.close();
}
const entry = (id: string, ...[data = { id }]: [data?: unknown]): DurableEntry =>
  data === null ? { ...entryOf(id), json: undefined } : entryOf(id, data);
type Taken = Awaited<ReturnType<Spill['takeParked']>>['taken'];
const idsOf = (taken: Taken): string[] => taken.map(({ entry: { id } }) => id);
/** Where entries stand, by their ids. */
const places = new Map<string, Place>();
async function put(spill: Spill, id: string, data?: unknown): Promise<boolean> {
  const place = await spill.append(data === undefined ? entry(id) : entry(id, data));
  if (place !== null) places.set(id, place);
  return place !== null;
}
async function take(spill: Spill, limit: number): Promise<Taken> {
  const { taken } = await spill.takeParked(limit);
  for (const {
    entry: { id },
    place,
  } of taken)
    places.set(id, place);
  return taken;
}
const placesOf = (ids: readonly string[]): Place[] => ids.map((id) => places.get(id)!);
const segments = (): string[] => readdirSync(folder).filter((name) => /\.\d+$/.test(name));
async function takeAll(spill: Spill): Promise<string[]> {
  const ids: string[] = [];
  while (spill.parked > 0) ids.push(...idsOf(await take(spill, 100)));
  return ids;
}

describe('the spill', () => {
  it('says at the boot which option names a path that cannot be used, and what to do', async () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(`${file}.lock`);
    const useless = [file, join(folder, 'file/below'), ...(existsSync('/proc/self') ? ['/proc/none/below'] : [])];
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
    expect(JSON.parse(readFileSync(`${file}.1`, 'utf8'))).toMatchObject({ id: 'a-1', data: { orderId: 'x\ny' } });
  });

  it('leaves no file behind when everything is struck off', async () => {
    const { spill } = await open();
    await Promise.all([put(spill, 'a-1'), put(spill, 'a-2')]);
    spill.strike(placesOf(['a-1']));
    spill.strike(placesOf(['a-2']));
    await until('its file to be deleted', () => segments().length === 0);
    expect(await put(spill, 'a-3')).toBe(true);
  });

  it('gives an earlier process’ entries back, oldest first, without those struck off', async () => {
    const first = await open();
    for (let i = 0; i < 10; i++) await put(first.spill, `a-${i}`, i === 3 ? null : { i });
    first.spill.strike(placesOf(['a-0', 'a-5']));
    await crash(first.spill);
    const second = await open();
    expect(second.left).toBe(8);
    const some = await take(second.spill, 3);
    expect(idsOf(some)).toEqual(['a-1', 'a-2', 'a-3']);
    expect(some.map(({ entry: { json } }) => json)).toEqual(['{"i":1}', '{"i":2}', undefined]);
    expect(idsOf(await take(second.spill, 100))).toEqual(['a-4', 'a-6', 'a-7', 'a-8', 'a-9']);
    expect(second.spill.parked).toBe(0);
    second.spill.strike(placesOf(['a-1', 'a-2', 'a-3', 'a-4', 'a-6', 'a-7', 'a-8', 'a-9']));
    await until('the old file to be deleted', () => segments().length === 0);
  });

  it('survives any number of crashes without losing an entry', async () => {
    for (let boot = 0; boot < 4; boot++) {
      const { spill, left } = await open();
      expect(left).toBe(boot);
      await put(spill, `boot-${boot}`);
      await crash(spill);
    }
    const { spill } = await open();
    expect(await takeAll(spill)).toEqual(['boot-0', 'boot-1', 'boot-2', 'boot-3']);
  });

  it('reads what 0.1.0 has left', async () => {
    const { json, options: _options, together: _together, traceparent: _traceparent, ...rest } = entry('old-1');
    const line = JSON.stringify({ ...rest, data: JSON.parse(json!) as unknown });
    writeFileSync(file, `${line}\n${line.replace('old-1', 'old-2')}\n{"struck":["old-1"]}\n`);
    const { spill } = await open();
    expect((await take(spill, 10)).map((taken) => taken.entry)).toEqual([
      { ...entry('old-2'), json: '{"id":"old-1"}' },
    ]);
  });

  it('reads an entry that lacks what newer ones have', async () => {
    writeFileSync(`${file}.1`, '{"id":"a-1","work":"SendReceipt","options":null}\n');
    const { spill } = await open();
    const [taken] = await take(spill, 1);
    expect(taken!.entry).toMatchObject({ id: 'a-1', together: null, options: { queue: null, delayMs: 0 } });
  });

  it('passes over a line that a crash has torn: its response was never sent', async () => {
    const first = await open();
    await put(first.spill, 'a-1');
    await crash(first.spill);
    appendFileSync(`${file}.1`, '{"id":"a-2","work":"SendRec');
    const second = await open();
    expect(second.left).toBe(1);
    await put(second.spill, 'a-3');
    await crash(second.spill);
    const third = await open();
    expect(await takeAll(third.spill)).toEqual(['a-1', 'a-3']);
    expect(reports).toEqual([]);
  });

  it.each([
    ['in the middle', '{"id":"a-3","work":"SendRec', ['a-2']],
    ['before its newline', '{"id":"a-3","work":"SendReceipt"}', ['a-2', 'a-3']],
  ])('remembers what is struck off behind a line that was torn %s', async (_where, torn, left) => {
    const first = await open();
    for (const id of ['a-1', 'a-2']) await put(first.spill, id);
    await crash(first.spill);
    appendFileSync(`${file}.1`, torn);
    const second = await open();
    const taken = await take(second.spill, 10);
    second.spill.strike(taken.filter(({ entry: { id } }) => id === 'a-1').map(({ place }) => place));
    await crash(second.spill);
    const third = await open();
    expect(await takeAll(third.spill)).toEqual(left);
    expect(reports).toEqual([]);
  });

  it('keeps a reject behind one that was torn', async () => {
    writeFileSync(`${file}.rejects`, '{"id":"a-0","work":"SendRec');
    const { spill } = await open();
    await put(spill, 'a-1');
    await spill.reject(entry('a-1'), places.get('a-1')!, 'refused');
    expect((await spill.rejected()).map(({ id }) => id)).toEqual(['a-1']);
  });

  it('sends the others of a file with a damaged line, says so, and keeps the file', async () => {
    const first = await open();
    for (const id of ['a-1', 'a-2', 'a-3']) await put(first.spill, id);
    await crash(first.spill);
    writeFileSync(`${file}.1`, readFileSync(`${file}.1`, 'utf8').replace('"id":"a-2"', '"id:"a-2"'));
    const { spill } = await open();
    expect(await takeAll(spill)).toEqual(['a-1', 'a-3']);
    expect(reports).toEqual([expect.stringContaining('holds damaged lines: 1 were skipped')]);
    spill.strike(placesOf(['a-1', 'a-3']));
    await until('it to be put aside', () => readdirSync(folder).includes('spill.ndjson.1.damaged'));
  });

  it('keeps each damaged file: a later one takes no name of theirs', async () => {
    for (let boot = 0; boot < 2; boot++) {
      const first = await open();
      await put(first.spill, `a-${boot}`);
      await crash(first.spill);
      appendFileSync(join(folder, segments()[0]!), `what is damaged in boot ${boot}\n`);
      const { spill } = await open();
      await takeAll(spill);
      spill.strike(placesOf([`a-${boot}`]));
      await until('it to be put aside', () => segments().length === 0);
      await crash(spill);
    }
    const kept = readdirSync(folder).filter((name) => name.endsWith('.damaged'));
    const texts = kept.toSorted().map((name) => readFileSync(join(folder, name), 'utf8'));
    expect(texts).toEqual([expect.stringContaining('in boot 0'), expect.stringContaining('in boot 1')]);
  });

  it('parks entries that memory has no room for and brings them back', async () => {
    const { spill } = await open();
    for (let i = 0; i < 5; i++) await put(spill, `a-${i}`);
    spill.park(places.get('a-2')!);
    spill.park(places.get('a-4')!);
    expect(spill.parked).toBe(2);
    expect(idsOf(await take(spill, 10))).toEqual(['a-2', 'a-4']);
    expect(await take(spill, 10)).toEqual([]);
    spill.park(places.get('a-4')!);
    spill.strike(placesOf(['a-2']));
    expect(idsOf(await take(spill, 10))).toEqual(['a-4']);
  });

  it('never brings an entry back that is struck off while the file is being read', async () => {
    const { spill } = await open();
    const ids = Array.from({ length: 300 }, (_, i) => `a-${i}`);
    await Promise.all(ids.map((id) => put(spill, id)));
    for (const id of ids.slice(200)) spill.park(places.get(id)!);
    const taken: string[] = [];
    const reading = (async () => {
      while (spill.parked > 0) taken.push(...idsOf(await take(spill, 5)));
    })();
    for (const id of ids.slice(0, 200)) {
      spill.strike(placesOf([id]));
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
    spill.strike(placesOf(ids.slice(0, 8)));
    await until('the first to be deleted', () => !segments().includes('spill.ndjson.1'));
    for (const id of ids.slice(8)) spill.park(places.get(id)!);
    expect(await takeAll(spill)).toEqual(ids.slice(8));
    spill.strike(placesOf(ids.slice(8)));
    await until('all to be deleted', () => segments().length === 0);
  });

  it('gives back the room of what is stored where the disk is full of it', async () => {
    const { spill } = await open();
    for (const id of ['a-1', 'a-2']) await put(spill, id);
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const writeStrikes = vi.spyOn(Segment.prototype, 'writeStrikes').mockRejectedValue(full);
    spill.strike(placesOf(['a-1', 'a-2']));
    await until('its file to be deleted', () => segments().length === 0);
    writeStrikes.mockRestore();
  });

  it('holds no more than its bytes', async () => {
    const { spill } = await open(file, 10_000);
    const ids = Array.from({ length: 20 }, (_, i) => `a-${i}`);
    const written = [];
    for (const id of ids) written.push(await put(spill, id, 'x'.repeat(1_000)));
    expect(written.filter(Boolean).length).toBeGreaterThan(5);
    expect(written.filter(Boolean).length).toBeLessThan(11);
    expect(reports[0]).toMatch(/could not write: it holds \d+ bytes already \(spillMaxBytes\)/);
    spill.strike(placesOf(ids));
    await until('it to be emptied', () => segments().length === 0);
    expect(await put(spill, 'a-21')).toBe(true);
  });

  it('reads in slices: a large file does not hold the event loop', async () => {
    const first = await open();
    await Promise.all(Array.from({ length: 30_000 }, (_, i) => put(first.spill, `a-${i}`, 'x'.repeat(100))));
    await crash(first.spill);
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
    await first.spill.reject(entry('a-2'), places.get('a-2')!, 'Job a-2 exceeds the size limit');
    await first.spill.reject(entry('a-3'), places.get('a-3')!, 'no');
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
    const { spill } = await open(folder);
    await put(spill, 'a-1');
    expect(readdirSync(folder).toSorted()).toEqual(['deferred.ndjson.1', 'deferred.ndjson.lock']);
  });

  it('says that the disk refuses, does not keep a response waiting for it, and goes on when it takes again', async () => {
    const { spill } = await open();
    rmSync(folder, { recursive: true });
    expect(await put(spill, 'a-1')).toBe(false);
    expect(reports).toEqual([expect.stringMatching(/^spill file: could not write: ENOENT.*in memory only/)]);
    mkdirSync(folder);
    expect(await put(spill, 'a-2')).toBe(true);
  });

  const probe = mkdtempSync(join(tmpdir(), 'perf-mount-'));
  const canMount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', probe]).status === 0;
  if (canMount) spawnSync('umount', [probe]);
  it.skipIf(!canMount)('loses nothing to a full disk, and leaves no torn line in front of the next', async () => {
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]);
    try {
      const first = await open();
      const written: string[] = [];
      for (let i = 0; i < 40; i++) {
        if (await put(first.spill, `a-${i}`, 'x'.repeat(3_000))) written.push(`a-${i}`);
      }
      expect(reports[0]).toContain('could not write: ENOSPC');
      expect(written.length).toBeLessThan(40);
      spawnSync('mount', ['-o', 'remount,size=1m', folder]);
      expect(await put(first.spill, 'after')).toBe(true);
      await crash(first.spill);
      const { spill } = await open();
      expect(await takeAll(spill)).toEqual([...written, 'after']);
      expect(reports.filter((report) => report.includes('damaged'))).toEqual([]);
      await crash(spill);
    } finally {
      spawnSync('umount', [folder]);
    }
  });

  it('shares one write among entries that arrive together', async () => {
    const { spill } = await open();
    const results = await Promise.all(Array.from({ length: 500 }, (_, i) => put(spill, `a-${i}`)));
    expect(results.every(Boolean)).toBe(true);
    expect(readFileSync(`${file}.1`, 'utf8').trimEnd().split('\n')).toHaveLength(500);
  });
});

describe('the lock of a spill', () => {
  const lock = (): string => `${file}.lock`;
  const kernel = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

  it('keeps a second one out as long as a process lives, and not longer', async () => {
    await open();
    await expect(open()).rejects.toThrow(
      `PERF_ERR_STORE: \`spillPath\` is in use by process ${process.pid}, this one, for another application: ${file}. ` +
        'Each application needs a file of its own.',
    );
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
    const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    const [place] = readFileSync(lock(), 'utf8').split(' ');
    await crash(opened[0]!);
    writeFileSync(lock(), `${place} ${child.pid} ${started}`);
    await expect(open()).rejects.toThrow(`is in use by process ${child.pid}: ${file}.`);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { spill } = await open();
    expect(await put(spill, 'a-1')).toBe(true);
  });

  it('of a process that died goes to one of many that want it at once', async () => {
    const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' });
    await once(child, 'exit');
    for (let round = 0; round < 20; round++) {
      writeFileSync(lock(), `nowhere/${kernel}/pid:[1] ${child.pid} 1`);
      const old = new Date(Date.now() - 60_000);
      utimesSync(lock(), old, old);
      const results = await Promise.allSettled(Array.from({ length: 5 }, () => open()));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const spill of opened.splice(0)) await spill.close().catch(() => {});
    }
  });

  it('of another container holds while it is renewed, and no longer', async () => {
    writeFileSync(lock(), `another-pod/${kernel}/pid:[1] ${process.pid} 1`);
    const renewing = setInterval(() => utimesSync(lock(), new Date(), new Date()), 500);
    let opens = false;
    const opening = open().then((it) => ((opens = true), it));
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(opens).toBe(false);
    clearInterval(renewing);
    const old = new Date(Date.now() - 60_000);
    utimesSync(lock(), old, old);
    const { spill } = await opening;
    expect(await put(spill, 'a-1')).toBe(true);
  });

  // It is taken over after 10 s only.
  it.runIf(LONG)('of another host holds while it is renewed, however wrong that host’s clock is', async () => {
    writeFileSync(lock(), `another-host/boot/pid:[1] ${process.pid} 1`);
    const renew = (): void => utimesSync(lock(), new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
    renew();
    const renewing = setInterval(renew, 500);
    let opens = false;
    const opening = open().then((it) => ((opens = true), it));
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(opens).toBe(false);
    clearInterval(renewing);
    const { spill } = await opening;
    expect(await put(spill, 'a-1')).toBe(true);
  });

  it('that another has taken, as from a container that stood still, is its own: nothing more is written, or taken away', async () => {
    const { spill } = await open();
    expect(await put(spill, 'a-1')).toBe(true);
    const theirs = `another-pod/${kernel}/pid:[1] ${process.pid} 1`;
    writeFileSync(lock(), theirs);
    const old = new Date(Date.now() - 60_000);
    utimesSync(lock(), old, old);
    expect(await put(spill, 'a-2')).toBe(false);
    expect(reports.at(-1)).toContain('another process has taken it over');
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(statSync(lock()).mtimeMs).toBeCloseTo(old.getTime(), -1);
    await spill.close();
    expect(readFileSync(lock(), 'utf8')).toBe(theirs);
  });

  it('is renewed by its owner', async () => {
    await open();
    const old = new Date(Date.now() - 60_000);
    utimesSync(lock(), old, old);
    await until('it to be renewed', () => statSync(lock()).mtimeMs > Date.now() - 30_000);
  });
});
