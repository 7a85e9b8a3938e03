import { expect, it } from 'vitest';
import { Summaries, summaryText } from '../../../src/sinks/summary.js';
import { FakeHost, routeSnapshot } from '../../fixtures/sink-host.js';

const TIME = { ownCpuMs: null, poolWaitMs: 0, loopWaitMs: 0, loopShare: 0 };
const times = (count: number, ms: number): number[] => Array.from({ length: count }, () => ms);

/** All that `count` requests of GET /insights have waited since the start, a request, and which calls were under way then. */
function waited(
  host: FakeHost,
  count: number,
  upstreamMs: number,
  calls: Readonly<Record<string, number>>,
  loopWaitMs = 0,
): void {
  Object.assign(host.snapshots, {
    routes: [
      routeSnapshot({
        route: '/insights',
        count,
        time: { ...TIME, upstreamMs, loopWaitMs },
        upstream: Object.entries(calls).map(([target, wallMs]) => ({ target, callsPerRequest: 1, wallMs })),
      }),
      routeSnapshot({ route: '/a' }),
    ],
  });
}

it('the summary names the upstream that took at least half of a route’s time, and only that', () => {
  const host = new FakeHost()
    .requests('GET', '/insights', 200, times(10, 200))
    .requests('GET', '/a', 200, times(10, 50));
  // Two calls at the same time: they are under way for 184 ms and not for 230.
  waited(host, 10, 184, { 'http ghe.acme.com': 184, 'redis cache:6379': 46 });
  const text = summaryText(new Summaries(60_000).next(host)!);
  expect(text).toMatch(
    /Top routes by total time: 10 × GET \/insights p50 \d+ ms, p95 \d+ ms, 74 % waiting for http ghe\.acme\.com; 10 × GET \/a p50 \d+ ms, p95 \d+ ms$/,
  );
});

it('adds the versions of a handler up, which have one pattern', () => {
  const host = new FakeHost().requests('GET', '/insights', 200, times(20, 100));
  const version = (upstreamMs: number, calls: Readonly<Record<string, number>>) => {
    waited(host, 10, upstreamMs, calls);
    return host.snapshots.routes[0]!;
  };
  const routes = [version(80, { redis: 80 }), version(80, { redis: 80 })];
  Object.assign(host.snapshots, { routes });
  expect(summaryText(new Summaries(60_000).next(host)!)).toContain('80 % waiting for redis');
});

it('is silent of an upstream that takes less than half, or shares it with others', () => {
  const half = new FakeHost().requests('GET', '/insights', 200, times(10, 200));
  waited(half, 10, 90, { 'http ghe.acme.com': 90 });
  expect(summaryText(new Summaries(60_000).next(half)!)).not.toContain('ghe');
  const shared = new FakeHost().requests('GET', '/insights', 200, times(10, 200));
  waited(shared, 10, 190, { 'http ghe.acme.com': 95, 'redis cache:6379': 95 });
  expect(summaryText(new Summaries(60_000).next(shared)!)).not.toContain('ghe');
});

it('speaks of the last window: what was slow before is forgotten, what is slow now is named', () => {
  const summaries = new Summaries(60_000);
  const host = new FakeHost().requests('GET', '/insights', 200, times(100, 1_000));
  waited(host, 100, 900, { 'http ghe.acme.com': 900 });
  expect(summaryText(summaries.next(host)!)).toContain('90 % waiting for http ghe.acme.com');
  // 100 requests of 100 ms, 10 ms of them at the upstream: means since the start are 455 ms.
  host.requests('GET', '/insights', 200, times(100, 100));
  waited(host, 200, 455, { 'http ghe.acme.com': 455 });
  expect(summaryText(summaries.next(host)!)).not.toContain('ghe');
});

it('does not name an upstream whose answers lay there while the event loop was busy', () => {
  const host = new FakeHost().requests('GET', '/insights', 200, times(10, 200));
  waited(host, 10, 184, { 'postgres shop': 184 }, 120);
  expect(summaryText(new Summaries(60_000).next(host)!)).not.toContain('postgres');
  const free = new FakeHost().requests('GET', '/insights', 200, times(10, 200));
  waited(free, 10, 184, { 'postgres shop': 184 }, 20);
  expect(summaryText(new Summaries(60_000).next(free)!)).toContain('82 % waiting for postgres shop');
});

it('does not take what requests have waited for that all have left for a wait of the next window', () => {
  const summaries = new Summaries(60_000);
  const host = new FakeHost().requests('GET', '/insights', 499, times(20, 1_000));
  const row = { route: '/insights', count: 20, aborted: 20, time: null };
  const upstream = (targets: Readonly<Record<string, number>>) =>
    Object.entries(targets).map(([target, wallMs]) => ({ target, callsPerRequest: 1, wallMs }));
  Object.assign(host.snapshots, { routes: [routeSnapshot({ ...row, upstream: upstream({ 'http pay': 1_000 }) })] });
  summaries.next(host);
  // 25 requests of 40 ms for the database: in the mean of all 45 since the start, 444 ms a request were for `pay`.
  host.requests('GET', '/insights', 200, times(25, 40));
  const time = { ...TIME, upstreamMs: 38 };
  const both = upstream({ 'http pay': (20 * 1_000) / 45, 'postgres shop': (25 * 38) / 45 });
  Object.assign(host.snapshots, { routes: [routeSnapshot({ ...row, count: 45, time, upstream: both })] });
  expect(summaryText(summaries.next(host)!)).toContain('95 % waiting for postgres shop');
});
