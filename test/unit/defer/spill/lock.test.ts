import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { until } from '../../../fixtures/until.js';
import { spills } from './spill.fixture.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const { at, crash, open, put, reports } = spills();

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

  it('that 0.1.0 wrote keeps a second one out as long as its process lives, and not longer', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    const old = new Date(Date.now() - 60_000);
    const text = `${child.pid} ${startOf(child.pid!)}`;
    writeFileSync(lock(), text);
    utimesSync(lock(), old, old);
    await expect(open()).rejects.toThrow(`is in use by process ${child.pid}: ${at.file}.`);
    expect(readFileSync(lock(), 'utf8')).toBe(text);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { spill } = await open();
    expect(await put(spill, 'a-1')).toBe(true);
    await crash(spill);
    // The pid is another process's now.
    writeFileSync(lock(), `${process.pid} 1`);
    await open();
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

  describe('that is gone', () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const [beat, standstill] = [2_000, 10_000];

    it('is written again by its owner: 0.1.0 removes it when it ends', async () => {
      const { spill } = await open();
      const text = readFileSync(lock(), 'utf8');
      for (let round = 0; round < 7; round++) {
        rmSync(lock());
        vi.advanceTimersByTime(beat);
        expect(readFileSync(lock(), 'utf8')).toBe(text);
      }
      await expect(open()).rejects.toThrow('is in use by process');
      await spill.close();
      expect(existsSync(lock())).toBe(false);
    });

    it('after another has held it is not', async () => {
      await open();
      writeFileSync(lock(), `${process.pid} 1`);
      vi.advanceTimersByTime(beat);
      rmSync(lock());
      vi.advanceTimersByTime(beat);
      expect(existsSync(lock())).toBe(false);
    });

    it('after its owner stood still is not: another may have held it', async () => {
      await open();
      rmSync(lock());
      vi.setSystemTime(Date.now() + standstill);
      vi.advanceTimersByTime(beat);
      expect(existsSync(lock())).toBe(false);
    });
  });
});
