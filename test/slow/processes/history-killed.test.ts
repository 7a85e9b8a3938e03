import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { fileHistory } from '../../../src/index.js';
import type { OpenHistoryStore } from '../../../src/history/history-store.js';
import { keptMs, type Tier } from '../../../src/history/rows/tiers.js';
import { countOf, rowOf } from '../../fixtures/history.js';

/** A hundred times in the long run. */
const KILLS = process.env['PERF_LONG'] === undefined ? 6 : 100;
const host = {
  keptMs: (tier: Tier) => keptMs(tier, 35),
  maxBytes: 64 * 1024 * 1024,
};

async function countsOf(store: OpenHistoryStore, tier: Tier, instance: string): Promise<number[]> {
  const counts: number[] = [];
  for await (const row of store.read(tier, { from: 0, to: Date.now() + 1 })) {
    if (row.instance === instance) counts.push(countOf(row));
  }
  return counts;
}

describe('fileHistory', () => {
  let directory = '';
  beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'perf-history-killed-'))));
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it(`killed ${KILLS} times while it writes: what was written is there, each row once, and the last at most is lost`, async () => {
    for (let kill = 0; kill < KILLS; kill++) {
      const instance = `run-${kill}`;
      const child = fork(`${inject('compiledFixtures')}/history.process.js`, [directory, instance], { execArgv: [] });
      let written = 0;
      // After another number of rows each time, and in the middle of the next.
      const enough = new Promise<void>((resolve) => {
        child.on('message', (count) => {
          written = count as number;
          if (written >= 1 + ((kill * 7) % 23)) resolve();
        });
      });
      const ended = once(child, 'exit');
      await Promise.race([enough, ended]);
      child.kill('SIGKILL');
      await ended;
      const store = await fileHistory({ directory }).open(host);
      const rows = await countsOf(store, '5m', instance);
      const [running, ...more] = await countsOf(store, '1h', instance);
      await store.close();
      expect(rows).toEqual(rows.map((_, index) => index + 1));
      expect(rows.length).toBeGreaterThanOrEqual(written);
      expect(more).toEqual([]);
      expect(rows.length - running!).toBeLessThanOrEqual(1);
    }
  }, 300_000);

  it('a full disk: the write fails, what was there stays, and the rows that waited are written later', async () => {
    const store = await fileHistory({ directory }).open(host);
    const at = Math.floor(Date.now() / 300_000) * 300_000;
    const path = join(directory, `1h-${new Date(at).toISOString().slice(0, 10)}.rows`);
    await store.write([rowOf({ at, requests: 1 })], []);
    symlinkSync('/dev/full', path);
    const waiting = [rowOf({ tier: '1h', at, requests: 2 })];
    await expect(store.write(waiting, [])).rejects.toThrow('ENOSPC');
    expect(await countsOf(store, '5m', 'pod-1/1/a')).toEqual([1]);
    unlinkSync(path);
    await store.write(waiting, []);
    expect(await countsOf(store, '1h', 'pod-1/1/a')).toEqual([2]);
    await store.close();
  });
});
