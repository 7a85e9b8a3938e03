import { afterEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import type { HistoryStore } from '../../../src/history/history-store.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { StoreKeeper } from '../../../src/history/store-keeper.js';
import { rowOf } from '../../fixtures/history.js';

/** A store that works, fails or hangs as it is told. */
class MoodyStore implements HistoryStore {
  readonly name = 'moody';
  readonly shared = false;
  mood: 'works' | 'fails' | 'hangs' = 'works';
  readonly rows: HistoryRow[] = [];
  running: readonly HistoryRow[] = [];
  opened = 0;
  closed = 0;
  private wake: () => void = () => {};

  async open() {
    await this.feel();
    this.opened += 1;
    return {
      write: async (finished: readonly HistoryRow[], running: readonly HistoryRow[]) => {
        await this.feel();
        this.rows.push(...finished);
        this.running = running;
      },
      read: async function* (this: MoodyStore) {
        await this.feel();
        yield* this.rows;
      }.bind(this),
      close: async () => void (this.closed += 1),
    };
  }

  cheerUp(): void {
    this.mood = 'works';
    this.wake();
  }

  fail(): void {
    this.mood = 'fails';
    this.wake();
  }

  private async feel(): Promise<void> {
    if (this.mood === 'hangs') await new Promise<void>((resolve) => (this.wake = resolve));
    if (this.mood === 'fails') throw new Error('disk full');
  }
}

describe('a store that fails', () => {
  const warnings: string[] = [];
  const report = new OncePerCause({ log() {}, error() {}, warn: (line) => warnings.push(line) }, () => 0);
  const host = { keptMs: () => 1, maxBytes: 1 };
  const rows = (from: number, to: number): HistoryRow[] =>
    Array.from({ length: to - from }, (_, i) => rowOf({ at: (from + i) * 300_000, requests: from + i }));
  const read = async (keeper: StoreKeeper): Promise<number> => {
    const rows: HistoryRow[] = [];
    return (await keeper.read('5m', { from: 0, to: 1 }, async (row) => void rows.push(row))) ? rows.length : 0;
  };
  afterEach(() => (warnings.length = 0));

  it('is reported once, tried again every minute, and then given everything that has waited', async () => {
    const store = new MoodyStore();
    const keeper = new StoreKeeper(
      store,
      host,
      new OncePerCause({ log() {}, error() {}, warn: (line) => warnings.push(line) }, () => 0),
    );
    store.mood = 'fails';
    for (let minute = 0; minute < 5; minute++) await keeper.write(rows(minute, minute + 1), []);
    expect(await read(keeper)).toBe(0);
    expect(warnings).toEqual([
      'history store "moody" failed: disk full. What this process has seen is in memory; the store is tried again every minute.',
    ]);
    store.cheerUp();
    await keeper.write(rows(5, 6), rows(6, 7));
    expect(store.rows.map(({ at }) => at / 300_000)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(store.running.length).toBe(1);
    await keeper.close(rows(6, 7), 1_000);
    expect([store.rows.length, store.running.length, store.closed]).toEqual([7, 0, 1]);
  });

  it('that hangs is asked for nothing more; what ends meanwhile is written together', async () => {
    const store = new MoodyStore();
    const keeper = new StoreKeeper(store, host, report);
    await keeper.write(rows(0, 1), []);
    store.mood = 'hangs';
    const writes = [keeper.write(rows(1, 2), []), keeper.write(rows(2, 3), []), keeper.write(rows(3, 4), [])];
    store.cheerUp();
    await Promise.all(writes);
    await keeper.write([], []);
    expect(store.rows.map(({ at }) => at / 300_000)).toEqual([0, 1, 2, 3]);
    expect(store.opened).toBe(1);
    await keeper.close([], 1_000);
  });

  it('that hangs at the end is given up after the deadline', async () => {
    const store = new MoodyStore();
    const keeper = new StoreKeeper(store, host, report);
    await keeper.write([], []);
    store.mood = 'hangs';
    await keeper.close(rows(0, 1), 20);
    expect(warnings.join()).toContain('history store "moody" failed: it did not settle within 20 ms');
  });

  it('is not said to fail where somebody still reads when the application has closed', async () => {
    const store = new MoodyStore();
    const keeper = new StoreKeeper(store, host, report);
    await keeper.write([], []);
    store.mood = 'hangs';
    const reading = read(keeper);
    await Promise.resolve();
    store.mood = 'works';
    await keeper.close([], 1_000);
    store.fail();
    expect([await reading, await read(keeper)]).toEqual([0, 0]);
    expect(warnings).toEqual([]);
  });

  it('hands on each row before the next one is read: five weeks of them have no room in memory', async () => {
    const seen: string[] = [];
    const store: HistoryStore = {
      name: 'long',
      shared: false,
      open: async () => ({
        write: async () => {},
        async *read() {
          for (const row of rows(0, 3)) {
            seen.push('read');
            yield row;
          }
        },
        close: async () => {},
      }),
    };
    const take = async (): Promise<void> => void seen.push('taken');
    expect(await new StoreKeeper(store, host, report).read('5m', { from: 0, to: 1 }, take)).toBe(true);
    expect(seen).toEqual(['read', 'taken', 'read', 'taken', 'read', 'taken']);
  });

  it('that is opened too late is closed again', async () => {
    const store = new MoodyStore();
    store.mood = 'hangs';
    const keeper = new StoreKeeper(store, host, report);
    void keeper.write([], []);
    await keeper.close([], 10);
    store.cheerUp();
    await expect.poll(() => [store.opened, store.closed]).toEqual([1, 1]);
  });

  it('loses the oldest rows when it fails for a day, and says how many', async () => {
    const store = new MoodyStore();
    const keeper = new StoreKeeper(store, host, report);
    store.mood = 'fails';
    const megabytes = rows(0, 26).map((row) => ({ ...row, data: Buffer.alloc(2 ** 20) }));
    await keeper.write(megabytes, []);
    expect(warnings).toContain('history store "moody" lost rows: 10, because it has failed for too long.');
    store.cheerUp();
    await keeper.write([], []);
    expect([store.rows.length, store.rows[0]!.at / 300_000]).toEqual([16, 10]);
  });
});
