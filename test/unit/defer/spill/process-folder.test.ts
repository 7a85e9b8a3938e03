import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { writeEntry } from '../../../../src/defer/durable/entry.js';
import { diskError, handlePrototype } from '../../../fixtures/disk.js';
import { until } from '../../../fixtures/until.js';
import { getOrAdd } from '../durable-entry.js';
import { spills } from './spill.fixture.js';

const { at, left, open, park, put, reports, take, takeAll } = spills();
const GONE = '0af76519-16cd-43dd-8448-eb211c80319c';

/** A folder of another process with one entry; `owner` null: it has closed. */
function leave(owner: string | null, name = GONE): string {
  const folder = join(at.root, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'work-000001.ndjson'), writeEntry(getOrAdd(name)));
  if (owner !== null) writeFileSync(join(folder, 'owner'), owner);
  return folder;
}

const ownFolder = (): string => readdirSync(at.root).find((name) => name !== GONE)!;

describe('the folders of processes that share a path', () => {
  it('two live side by side, each with its own entries', async () => {
    const [one, other] = [await open(), await open()];
    await Promise.all([put(one.spill, 'a'), put(other.spill, 'b')]);
    expect(readdirSync(at.root)).toHaveLength(2);
    expect(left().toSorted()).toEqual(['a', 'b']);
    await one.adopt();
    expect(one.spill.hasParked).toBe(false);
  });

  it('what a process that was killed has left is taken over at once, by one of many', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    const me = await open();
    const [place] = readFileSync(join(at.root, ownFolder(), 'owner'), 'utf8').split(' ');
    leave(`${place} ${child.pid}`);
    await me.adopt();
    expect(me.spill.hasParked).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const all = await Promise.all(Array.from({ length: 4 }, () => open()));
    const taken = await Promise.all([me, ...all].map(async ({ spill }) => takeAll(spill)));
    expect(taken.flat()).toEqual([GONE]);
  });

  it('one of another host is its own for as long as it shows that it lives, and 10 s longer', async () => {
    const folder = leave('another-host/boot/pid:[1] 1');
    const { spill, adopt } = await open();
    const renew = (): void => utimesSync(join(folder, 'owner'), new Date(), new Date());
    const renewing = setInterval(renew, 500);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await adopt();
    expect(spill.hasParked).toBe(false);
    clearInterval(renewing);
    // It looks by itself every 5 s.
    await until('it to be taken over', () => spill.hasParked, 60_000);
    expect(await takeAll(spill)).toEqual([GONE]);
  }, 90_000);

  it('a process whose folder was taken over while it stood still writes to another one, and loses nothing', async () => {
    const { spill, counted } = await open();
    await put(spill, 'before');
    park((await spill.append(getOrAdd('parked')))!);
    const mine = ownFolder();
    const theirs = join(at.folder, 'elsewhere');
    renameSync(join(at.root, mine), theirs);
    expect(await put(spill, 'after')).toBe(true);
    expect(ownFolder()).not.toBe(mine);
    expect(left()).toEqual(['after']);
    expect(counted.lost).toBe(1);
    expect(reports).toEqual([expect.stringContaining('another process has taken over what this one had')]);
    expect(
      readFileSync(
        join(
          theirs,
          readdirSync(theirs).find((name) => name.startsWith('work'))!,
        ),
        'utf8',
      ),
    ).toContain('"id":"before"');
  });

  it('what was moved before the disk refused is sent: nobody would look for it in this folder', async () => {
    const { spill, adopt } = await open();
    const folder = leave(null);
    writeFileSync(join(folder, 'work-000002.ndjson'), writeEntry(getOrAdd('second')));
    // The second file cannot take this name.
    const taken = join(at.root, ownFolder(), 'work-000002.ndjson');
    mkdirSync(taken);
    await adopt();
    expect(reports).toEqual([expect.stringContaining('could not take over files of processes that have ended')]);
    expect(await takeAll(spill)).toEqual([GONE]);
    rmdirSync(taken);
    await adopt();
    expect(await takeAll(spill)).toEqual(['second']);
  });

  it('a file that cannot be opened for a while is read later', async () => {
    leave(null);
    const { spill } = await open();
    const file = (await handlePrototype()) as { stat(): Promise<unknown> };
    const refused = vi.spyOn(file, 'stat').mockRejectedValueOnce(diskError('EMFILE'));
    onTestFinished(() => refused.mockRestore());
    await expect(take(spill)).rejects.toThrow('EMFILE');
    expect(await takeAll(spill)).toEqual([GONE]);
  });

  it('shows that it lives', async () => {
    await open();
    const owner = join(at.root, ownFolder(), 'owner');
    const old = new Date(Date.now() - 60_000);
    utimesSync(owner, old, old);
    await until('it to be renewed', () => statSync(owner).mtimeMs > Date.now() - 30_000);
  });

  const victim = (): string => {
    const path = join(at.folder, 'victim.conf');
    writeFileSync(path, 'first line\nsecond line without an end');
    return path;
  };
  it.each([
    ['a link', (path: string, to: string) => symlinkSync(to, path)],
    ['a hard link', (path: string, to: string) => linkSync(to, path)],
  ])('follows no file that is %s', async (_, link) => {
    const path = victim();
    const folder = leave(null);
    link(join(folder, 'work-000002.ndjson'), path);
    const { spill } = await open();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(...(await take(spill).catch(() => [])).map(({ entry }) => entry.id));
    expect(ids).toEqual([GONE]);
    expect(readFileSync(path, 'utf8')).toBe('first line\nsecond line without an end');
    expect(reports.join()).toMatch(/spill: could not read/);
  });

  it('takes over no link to a folder, and none that everybody may write to', async () => {
    leave(null, '1af76519-16cd-43dd-8448-eb211c80319c');
    renameSync(join(at.root, '1af76519-16cd-43dd-8448-eb211c80319c'), join(at.folder, 'elsewhere'));
    symlinkSync(join(at.folder, 'elsewhere'), join(at.root, '2af76519-16cd-43dd-8448-eb211c80319c'));
    const open777 = join(at.root, GONE);
    mkdirSync(open777);
    const { chmodSync } = await import('node:fs');
    chmodSync(open777, 0o777);
    const { spill } = await open();
    expect(spill.hasParked).toBe(false);
    expect(reports).toEqual([expect.stringContaining('everybody may write to it')]);
  });
});
