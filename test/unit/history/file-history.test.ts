import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fileHistory } from '../../../src/index.js';
import type { OpenHistoryStore } from '../../../src/history/history-store.js';
import { encodeWindow } from '../../../src/history/rows/encoded-window.js';
import { encodeFrame } from '../../../src/history/rows/row.js';
import { DAY_MS, HOUR_MS, keptMs, type Tier } from '../../../src/history/rows/tiers.js';
import { countOf, rowOf, windowOf } from '../../fixtures/history.js';

const host = {
  keptMs: (tier: Tier) => keptMs(tier, 35),
  maxBytes: 64 * 1024 * 1024,
};
const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;

describe('fileHistory', () => {
  let directory = '';
  let open: OpenHistoryStore[] = [];
  beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'perf-file-history-'))));
  afterEach(async () => {
    vi.useRealTimers();
    for (const store of open) await store.close();
    open = [];
    rmSync(directory, { recursive: true, force: true });
  });
  const start = async (given = host): Promise<OpenHistoryStore> => {
    const store = await fileHistory({ directory }).open(given);
    open.push(store);
    return store;
  };
  const countsOf = async (store: OpenHistoryStore, tier: Tier = '1h'): Promise<number[]> => {
    const counts: number[] = [];
    for await (const row of store.read(tier, { from: 0, to: now + DAY_MS })) counts.push(countOf(row));
    return counts;
  };
  const end = async (store: OpenHistoryStore): Promise<void> => {
    await store.close();
    open = open.filter((one) => one !== store);
  };
  const segments = (tier: Tier | 'running'): string[] =>
    readdirSync(directory)
      .filter((name) => name.startsWith(tier))
      .map((name) => join(directory, name));
  const row = (requests: number, at = now) => rowOf({ tier: '1h', at, requests, instance: `run-${requests}` });

  it.each([
    ['the head of a row', (bytes: Buffer) => bytes.subarray(0, 5)],
    ['half of a row', (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1)],
    [
      'a row whose bytes never arrived',
      (bytes: Buffer) => Buffer.concat([bytes.subarray(0, 12), Buffer.alloc(bytes.length - 12)]),
    ],
    ['a length that is none', () => Buffer.from('\xff\xff\xff\xff and no end', 'latin1')],
  ])('reads what stands before %s, and what is written behind it', async (_, torn) => {
    const first = await start();
    await first.write([row(1), row(2)], []);
    await end(first);
    const [path] = segments('1h');
    appendFileSync(path!, torn(encodeFrame(row(3))));
    const second = await start();
    expect(await countsOf(second)).toEqual([1, 2]);
    await second.write([row(4)], []);
    expect(await countsOf(second)).toEqual([1, 2, 4]);
  });

  it('leaves out one row whose bytes have changed, and rows of another version', async () => {
    const first = await start();
    await first.write([row(1), row(2), row(3)], []);
    await end(first);
    const [path] = segments('1h');
    const bytes = readFileSync(path!);
    const length = encodeFrame(row(1)).length;
    bytes[length + 20]! ^= 1;
    // Its version is another one, and its checksum right.
    const foreign = encodeFrame(row(9));
    const body = foreign.subarray(12);
    body[body.indexOf('version') + 'version'.length + 3]! += 1;
    const { crc32 } = await import('node:zlib');
    foreign.writeUInt32LE(crc32(body), 8);
    writeFileSync(path!, Buffer.concat([bytes, foreign]));
    const second = await start();
    expect(await countsOf(second)).toEqual([1, 3]);
    await second.write([row(4)], []);
    expect(await countsOf(second)).toEqual([1, 3, 4]);
  });

  it.each([0, 0xff])('loses the row whose length has become a wrong one, and not what follows', async (byte) => {
    const first = await start();
    await first.write([row(1), row(2), row(3)], []);
    await end(first);
    const [path] = segments('1h');
    const bytes = readFileSync(path!);
    bytes.fill(byte, encodeFrame(row(1)).length + 4, encodeFrame(row(1)).length + 8);
    writeFileSync(path!, bytes);
    const second = await start();
    await second.write([row(4)], []);
    expect(await countsOf(second)).toEqual([1, 3, 4]);
  });

  it('loses only the end when the file is cut anywhere', async () => {
    const first = await start();
    await first.write([row(1), row(2), row(3)], []);
    await end(first);
    const [path] = segments('1h');
    truncateSync(path!, statSync(path!).size - 1);
    expect(await countsOf(await start())).toEqual([1, 2]);
  });

  it('may be shared: each process reads the rows of all, those of one that was killed at once', async () => {
    const first = await start();
    await first.write([row(1)], [row(2)]);
    const second = await start();
    await second.write([row(3)], [row(4)]);
    expect((await countsOf(first)).toSorted((x, y) => x - y)).toEqual([1, 2, 3, 4]);
    await second.write([row(4)], [row(5)]);
    await second.write([row(5)], []);
    // The first one is killed: it never writes again.
    expect((await countsOf(await start())).toSorted((x, y) => x - y)).toEqual([1, 2, 3, 4, 5]);
  });

  it('counts once what a process has left that was killed between two writes', async () => {
    const first = await start();
    const running = row(5);
    const site = windowOf(8);
    site.process.observedMs *= 2;
    await first.write([], [running]);
    const left = readFileSync(segments('running')[0]!);
    await first.write([{ ...running, data: encodeWindow(site) }], []);
    await end(first);
    writeFileSync(join(directory, 'running-0.rows'), left);
    expect(await countsOf(await start())).toEqual([8]);
  });

  it('forgets what is too old, and then the oldest until the rest is small enough', async () => {
    const first = await start();
    const days = Array.from({ length: 8 }, (_, day) => row(day + 1, now - day * DAY_MS));
    await first.write([...days, row(99, now - 60 * DAY_MS)], []);
    await end(first);
    const size = encodeFrame(row(1)).length;
    const second = await start();
    expect((await countsOf(second)).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await end(second);
    const small = await start({ ...host, maxBytes: 3 * size + 10 });
    await small.write([], []);
    expect((await countsOf(small)).toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
    await end(small);
    const short = await start({ ...host, keptMs: () => DAY_MS });
    await short.write([], []);
    expect((await countsOf(short)).length).toBeLessThanOrEqual(2);
  });

  it('keeps a row once that is written again, because looking for old files has failed', async () => {
    const store = await start();
    await store.write([row(1)], []);
    // Where it points to is no file: nothing can be said of its size.
    const broken = join(directory, `1h-${new Date(now + DAY_MS).toISOString().slice(0, 10)}.rows`);
    symlinkSync(join(directory, 'nowhere'), broken);
    vi.setSystemTime(Date.now() + 2 * HOUR_MS);
    await expect(store.write([row(2)], [])).rejects.toThrow('ENOENT');
    rmSync(broken);
    await store.write([row(2)], []);
    expect(await countsOf(store)).toEqual([1, 2]);
  });

  it('says at once where there can be no folder', async () => {
    const directory = join(process.execPath, 'history');
    await expect(fileHistory({ directory }).open(host)).rejects.toThrow(`mkdir '${directory}'`);
  });

  it.each([[''], [undefined], [7]])('wants a folder, not %j', (given) => {
    expect(() => fileHistory({ directory: given as string })).toThrow(
      /PERF_ERR_OPTION: `fileHistory\.directory` must be the path of a folder/,
    );
  });
});
