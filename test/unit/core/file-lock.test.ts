import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { lockFile } from '../../../src/core/file-lock.js';
import { until } from '../../fixtures/until.js';

const inUse = (owner: string) => new Error(owner) as never;
/** From its state, field 3 of its `stat`. */
const fieldsOf = (pid: string): string[] => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');

async function placeOf(file: string): Promise<string> {
  const own = await lockFile(file, inUse);
  const [place] = readFileSync(`${file}.lock`, 'utf8').split(' ');
  own.release();
  return place!;
}

/** Takes a lock and releases it, in a thread of its own; `turns`: how often its event loop turned meanwhile. */
async function lockInThread(file: string): Promise<{ error: string | null; turns: number }> {
  const worker = new Worker(resolve(inject('compiledFixtures'), 'lock.thread.js'), { workerData: { file } });
  try {
    const [answer] = (await once(worker, 'message')) as [{ error: string | null; turns: number }];
    return answer;
  } finally {
    await worker.terminate();
  }
}

describe.runIf(existsSync('/proc/self/stat'))('the lock of a file', () => {
  it('of a process that was killed is free, also while its parent does not ask for it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-file-lock-'));
    const file = join(directory, 'history');
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600']);
    const [said] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = said.toString().trim();
    // The shell itself would ask for the end of its child.
    const parentName = (): string => readFileSync(`/proc/${parent.pid}/comm`, 'utf8').trim();
    await until('the shell to be replaced', () => parentName() === 'sleep');
    const own = await lockFile(file, inUse);
    const [place] = readFileSync(`${file}.lock`, 'utf8').split(' ');
    own.release();
    writeFileSync(`${file}.lock`, `${place} ${pid} ${fieldsOf(pid)[19]}`);
    await expect(lockFile(file, inUse)).rejects.toThrow(`process ${pid}`);
    process.kill(Number(pid), 'SIGKILL');
    await until('it has ended', () => fieldsOf(pid)[0] === 'Z');
    (await lockFile(file, inUse)).release();
    parent.kill();
    rmSync(directory, { recursive: true });
  });

  describe('that nobody can take over', () => {
    let [directory, file] = ['', ''];
    beforeEach(() => {
      directory = mkdtempSync(join(tmpdir(), 'perf-file-lock-'));
      file = join(directory, 'history');
    });
    afterEach(() => rmSync(directory, { recursive: true }));

    it.each<[string, (lock: string) => void]>([
      ['a link to nowhere', (lock) => symlinkSync('/nowhere/at/all', lock)],
      ['a link to a file', (lock) => symlinkSync('/etc/hostname', lock)],
      ['a folder', (lock) => mkdirSync(lock)],
      ['a named pipe', (lock) => execFileSync('mkfifo', [lock])],
    ])('because it is %s is PERF_ERR_STORE at once, which says what to remove', async (_what, make) => {
      make(`${file}.lock`);
      // In a thread of its own: a wait that never lets the loop turn would keep this one from failing.
      const { error } = await lockInThread(file);
      expect(error).toBe(
        `PERF_ERR_STORE: ${file}.lock is not a file of this library's: a link, or something else that it has not made. ` +
          'Look at what it is, remove it, and start again.',
      );
      expect(lstatSync(`${file}.lock`, { throwIfNoEntry: false })).toBeDefined();
    });
  });

  it('without a living owner is taken over by one of several threads, and leaves nothing', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-file-lock-'));
    const file = join(directory, 'history');
    const place = await placeOf(file);
    writeFileSync(`${file}.lock`, `${place} 1 0 0 dead`);
    const tried = await Promise.all(Array.from({ length: 4 }, () => lockInThread(file)));
    const errors = tried.map(({ error }) => error).filter((error) => error !== null);
    expect(errors.length).toBeLessThan(4);
    for (const error of errors) expect(error).toBe(`process ${process.pid}, this one, for another application`);
    expect(readdirSync(directory)).toEqual([]);
    rmSync(directory, { recursive: true });
  });

  it('that could not be removed on release throws nothing, and is taken over by its own process', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-file-lock-'));
    const file = join(directory, 'history');
    const first = await lockFile(file, inUse);
    await expect(lockFile(file, inUse)).rejects.toThrow(`process ${process.pid}, this one`);
    const text = readFileSync(`${file}.lock`);
    // What a release meets that finds no descriptor: the lock cannot be read.
    rmSync(`${file}.lock`);
    mkdirSync(`${file}.lock`);
    first.release();
    rmdirSync(`${file}.lock`);
    writeFileSync(`${file}.lock`, text);
    const second = await lockFile(file, inUse);
    expect(readFileSync(`${file}.lock`)).not.toEqual(text);
    second.release();
    expect(readdirSync(directory)).toEqual([]);
    rmSync(directory, { recursive: true });
  });

  it('of another thread of this process is not taken over while it is renewed', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-file-lock-'));
    const file = join(directory, 'history');
    const first = await lockFile(file, inUse);
    const { error } = await lockInThread(file);
    expect(error).toBe(`process ${process.pid}, this one, for another application`);
    expect(first.isHeld).toBe(true);
    first.release();
    rmSync(directory, { recursive: true });
  });

  const probe = mkdtempSync(join(tmpdir(), 'perf-lock-mount-'));
  const mount = (size: string): boolean =>
    spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', probe]).status === 0;
  const canMount = mount('64k');
  if (canMount) spawnSync('umount', [probe]);
  it.skipIf(!canMount)('leaves no empty one where the disk is full', async () => {
    mount('64k');
    try {
      const full = join(probe, 'full');
      expect(() => writeFileSync(full, Buffer.alloc(1_000_000))).toThrow('ENOSPC');
      const file = join(probe, 'history');
      await expect(lockFile(file, inUse)).rejects.toThrow('ENOSPC');
      expect(existsSync(`${file}.lock`)).toBe(false);
      rmSync(full);
      (await lockFile(file, inUse)).release();
    } finally {
      spawnSync('umount', [probe]);
      rmSync(probe, { recursive: true });
    }
  });
});
