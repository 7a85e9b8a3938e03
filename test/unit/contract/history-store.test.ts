import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { fileHistory } from '../../../src/history/file-history.js';
import type { HistoryStore, OpenHistoryStore } from '../../../src/history/history-store.js';
import { encodeWindow, EncodedWindow } from '../../../src/history/rows/encoded-window.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { HOUR_MS, keptMs, type Tier } from '../../../src/history/rows/tiers.js';
import { RouteSums, RouteWindow, SiteWindow } from '../../../src/history/rows/window.js';
import { countOf, rowOf } from '../../fixtures/history.js';

const host = {
  keptMs: (tier: Tier) => keptMs(tier, 35),
  maxBytes: 64 * 1024 * 1024,
};
const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;

const root = mkdtempSync(join(tmpdir(), 'perf-history-store-'));
let made = 0;
afterAll(async () => {
  rmSync(root, { recursive: true, force: true });
});

const stores: Record<string, () => HistoryStore> = {
  file: () => fileHistory({ directory: join(root, `${(made += 1)}`) }),
};

async function read(store: OpenHistoryStore, tier: Tier, from = hour - HOUR_MS, to = hour + HOUR_MS) {
  const rows: HistoryRow[] = [];
  for await (const row of store.read(tier, { from, to })) rows.push(row);
  return rows.toSorted((a, b) => a.at - b.at || a.instance.localeCompare(b.instance));
}

describe.each(Object.keys(stores))('a history store: %s', (name) => {
  it('gives back what it was given, by tier and range', async () => {
    const store = await stores[name]!().open(host);
    const finished = [
      rowOf({ tier: '1h', at: hour - HOUR_MS, requests: 3 }),
      rowOf({ tier: '1h', at: hour, requests: 5 }),
      rowOf({ tier: '5m', at: hour, requests: 7, release: '' }),
    ];
    await store.write(finished, []);
    expect(await read(store, '1h')).toEqual(finished.slice(0, 2).map((row) => ({ ...row, data: expect.anything() })));
    expect((await read(store, '1h', hour)).map(countOf)).toEqual([5]);
    expect((await read(store, '1h', hour - HOUR_MS, hour)).map(countOf)).toEqual([3]);
    expect((await read(store, '5m')).map(countOf)).toEqual([7]);
    expect(await read(store, '1m')).toEqual([]);
    await store.close();
  });

  it('keeps once what comes again after a write that failed, and the last of what runs', async () => {
    const store = await stores[name]!().open(host);
    const finished = [rowOf({ at: hour, requests: 3 })];
    await store.write(finished, [rowOf({ tier: '1h', at: hour, requests: 3 })]);
    await store.write(finished, [rowOf({ tier: '1h', at: hour, requests: 4 })]);
    expect((await read(store, '5m')).map(countOf)).toEqual([3]);
    expect((await read(store, '1h')).map(countOf)).toEqual([4]);
    await store.close();
  });

  it('has the later of two rows of one bucket: a clock that was set back has gone on with it', async () => {
    const kind = stores[name]!();
    const store = await kind.open(host);
    await store.write([rowOf({ at: hour, requests: 3 }), rowOf({ at: hour, requests: 2, instance: 'b' })], []);
    await store.write([rowOf({ at: hour, requests: 5 })], []);
    expect((await read(store, '5m')).map(countOf).toSorted((a, b) => a - b)).toEqual([2, 5]);
    await store.close();
  });

  it('has the rows of the run before, what ran when it was killed included', async () => {
    const kind = stores[name]!();
    const killed = await kind.open(host);
    await killed.write(
      [rowOf({ at: hour, requests: 1, instance: 'a' })],
      [rowOf({ tier: '1h', at: hour, requests: 2, instance: 'a' })],
    );
    await killed.close();
    const store = await kind.open(host);
    await store.write([], [rowOf({ tier: '1h', at: hour, requests: 8, instance: 'b' })]);
    expect((await read(store, '1h')).map(countOf)).toEqual([2, 8]);
    expect((await read(store, '5m')).map(countOf)).toEqual([1]);
    await store.close();
    const again = await kind.open(host);
    expect((await read(again, '1h')).map(countOf)).toEqual([2, 8]);
    await again.close();
  });
});

it('a row holds each route and the whole, with percentiles within 1.6 %', () => {
  const site = new SiteWindow();
  for (const [route, from] of [
    ['GET /a', 1],
    ['GET /b', 1_000],
  ] as const) {
    const window = site.openRoute(route);
    for (let i = 0; i < 1_000; i++) {
      window.histogram.record(from + i);
      window.completed += 1;
      window.sumMs += from + i;
    }
    window.called('http api.github.com', 12, 345.5);
    window.over.set(1_000, 7);
  }
  const encoded = new EncodedWindow(encodeWindow(site));
  expect(encoded.routeNames).toEqual(['GET /a', 'GET /b']);
  expect(encoded.addTo(new RouteSums(), null).count).toBe(2_000);
  expect(encoded.addTo(new RouteSums(), 'GET /c').count).toBe(0);
  const a = encoded.addTo(new RouteWindow(), 'GET /a');
  expect([a.completed, a.sumMs, a.over.get(1_000)]).toEqual([1_000, 500_500, 7]);
  expect(a.targets.get('http api.github.com')).toEqual({ calls: 12, wallMs: 345.5 });
  for (const q of [0.5, 0.95, 0.99]) expect(Math.abs(a.histogram.quantileMs(q) / (q * 1_000) - 1)).toBeLessThan(0.016);
  expect([a.histogram.minMs, a.histogram.maxMs]).toEqual([1, 1_000]);
});
