import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../../fixtures/until.js';
import { spills } from './spill.fixture.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const { at, crash, open, put, reports, segments } = spills();

const startOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!;
};

describe('the lock of a spill', () => {
  const lock = (): string => `${at.file}.lock`;
  const kernel = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

  it('keeps a second one out as long as a process lives, and not longer', async () => {
    const first = await open();
    await expect(open()).rejects.toThrow(
      `PERF_ERR_STORE: \`spillPath\` is in use by process ${process.pid}, this one, for another application: ${at.file}. ` +
        'Each application needs a file of its own.',
    );
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    const started = startOf(child.pid!);
    const [place] = readFileSync(lock(), 'utf8').split(' ');
    await crash(first.spill);
    writeFileSync(lock(), `${place} ${child.pid} ${started}`);
    await expect(open()).rejects.toThrow(`is in use by process ${child.pid}: ${at.file}.`);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { spill } = await open();
    expect(await put(spill, 'a-1')).toBe(true);
  });

  it('does not stay when the disk cannot be read', async () => {
    const { spill } = await open();
    await put(spill, 'a-1');
    await crash(spill);
    const [segment] = segments();
    const path = join(at.folder, segment!);
    const text = readFileSync(path);
    rmSync(path);
    mkdirSync(path);
    await expect(open()).rejects.toThrow('PERF_ERR_STORE: `spillPath`');
    expect(existsSync(lock())).toBe(false);
    rmdirSync(path);
    writeFileSync(path, text);
    expect((await open()).left).toBe(1);
  });

  it('of a process that died goes to one of many that want it at once', async () => {
    const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' });
    await once(child, 'exit');
    for (let round = 0; round < 20; round++) {
      writeFileSync(lock(), `nowhere/${kernel}/pid:[1] ${child.pid} 1`);
      const old = new Date(Date.now() - 60_000);
      utimesSync(lock(), old, old);
      const results = await Promise.allSettled(Array.from({ length: 5 }, () => open()));
      const opened = results.filter((result) => result.status === 'fulfilled');
      expect(opened).toHaveLength(1);
      await crash(opened[0]!.value.spill);
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
