import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockFile } from '../../../src/core/file-lock.js';
import { until } from '../../fixtures/until.js';

const inUse = (owner: string) => new Error(owner) as never;
/** From its state, field 3 of its `stat`. */
const fieldsOf = (pid: string): string[] => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');

describe.runIf(existsSync('/proc/self/stat'))('the lock of a file', () => {
  it('of a process that was killed is free, also while its parent does not ask for it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-file-lock-'));
    const file = join(directory, 'history');
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600']);
    const [said] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = said.toString().trim();
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
