import { Logger, type LoggerService } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loggerSink, type LoggerSinkOptions } from '../../../src/index.js';
import { blockRecord } from '../../fixtures/records.js';
import { FakeHost, routeSnapshot } from '../../fixtures/sink-host.js';

const times = (count: number, ms: number): number[] => Array.from({ length: count }, () => ms);

describe('the summary of a window', () => {
  const lines: unknown[] = [];
  const keep = (message: unknown): void => void lines.push(message);
  const logger: LoggerService = { log: keep, warn: keep, error: keep };
  let host: FakeHost;
  beforeEach(() => {
    vi.useFakeTimers();
    lines.length = 0;
    host = new FakeHost();
    Logger.overrideLogger(logger);
  });
  afterEach(() => {
    vi.useRealTimers();
    Logger.overrideLogger(true);
  });
  const start = async (options: LoggerSinkOptions = { format: 'text' }) => {
    const sink = loggerSink(options);
    await sink.start?.(host);
    return sink;
  };

  it('names the routes that took Most time, and nothing when nothing came', async () => {
    host.requests('GET', '/a', 200, times(100, 3)).requests('GET', '', 404, times(50, 40));
    host.requests('GET', '/c', 200, times(20, 20)).requests('GET', '/d', 200, times(60, 1));
    await start();
    vi.advanceTimersByTime(60_000);
    expect(lines).toEqual([
      'Last 60 s: 230 requests. Top routes by total time: 50 × * (no route) p50 40 ms, p95 40 ms; 20 × GET /c p50 20 ms, p95 20 ms; 100 × GET /a p50 3.0 ms, p95 3.0 ms',
    ]);
    vi.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(1);
  });

  it('is of each application that shares the sink, until that one closes', async () => {
    const sink = await start();
    const second = new FakeHost();
    await sink.start?.(second);
    host.requests('GET', '/a', 200, times(30, 10));
    second.requests('GET', '/b', 200, times(50, 10));
    vi.advanceTimersByTime(60_000);
    expect(lines.map((line) => String(line).slice(0, 23))).toEqual([
      'Last 60 s: 30 requests.',
      'Last 60 s: 50 requests.',
    ]);
    await sink.close?.();
    host.requests('GET', '/a', 200, times(30, 10));
    second.requests('GET', '/b', 200, times(20, 10));
    vi.advanceTimersByTime(60_000);
    expect(lines.slice(2).map((line) => String(line).slice(0, 23))).toEqual(['Last 60 s: 20 requests.']);
    await sink.close?.();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('counts and measures what belongs to the window, not what was before', async () => {
    host.requests('GET', '/a', 200, times(1_000, 900)).requests('GET', '/a', 500, times(7, 900));
    await start();
    vi.advanceTimersByTime(60_000);
    host.requests('GET', '/a', 200, times(30, 10)).requests('GET', '/a', 503, times(2, 10));
    vi.advanceTimersByTime(60_000);
    expect(lines[1]).toMatch(
      /^Last 60 s: 32 requests, 2 errors\. Top routes by total time: 32 × GET \/a p50 (1\d|9\.\d) ms/,
    );
    expect(lines[1]).not.toMatch(/9\d\d ms|1039|since start/);
  });

  it('tells messages from requests', async () => {
    host.requests('GET', '/a', 200, times(20, 3)).requests('MESSAGE', 'Orders.sum', 200, times(15, 2));
    host.requests('CRON', 'Reports.rebuild', 200, [4]);
    await start();
    vi.advanceTimersByTime(60_000);
    expect(lines[0]).toMatch(/^Last 60 s: 20 requests, 15 messages\. Top routes /);
    host.requests('SOCKET', 'Chat.say', 200, [1]);
    vi.advanceTimersByTime(60_000);
    expect(lines[1]).toMatch(/^Last 60 s: 1 message\. Top routes /);
  });

  it('gives percentiles two digits: more would contradict the lines of slow requests', async () => {
    host.requests('GET', '/slow', 200, times(17, 1_304)).requests('GET', '/a', 200, times(20, 3));
    await start();
    vi.advanceTimersByTime(60_000);
    expect(lines[0]).toContain('17 × GET /slow p50 1300 ms, p95 1300 ms; 20 × GET /a p50 3.0 ms, p95 3.0 ms');
  });

  it('names a route of a few slow requests, by their mean: percentiles would be chance', async () => {
    host.requests('GET', '/rare', 200, [4_000, 6_000]).requests('GET', '/often', 200, times(10, 1));
    host.requests('GET', '/broken', 500, [2]);
    await start();
    vi.advanceTimersByTime(60_000);
    expect(lines[0]).toMatch(
      /^Last 60 s: 13 requests, 1 error\. Top routes by total time: 2 × GET \/rare mean 5000 ms; 10 × GET \/often p50 .*; 1 × GET \/broken mean 2\.0 ms, 1 error$/,
    );
  });

  it('says what was lost in it, and what is true now apart from it', async () => {
    const sink = await start();
    host.requests('GET', '/a', 200, times(10, 5));
    const pause = blockRecord({ cause: 'not-scheduled', durationMs: 70 });
    await sink.publish([blockRecord({ durationMs: 100 }), pause, blockRecord({ durationMs: 240 }), pause]);
    const eventLoop = { utilization: 0.123, delayMs: { p50: 0, p99: 4.4, max: 9 }, blocks: 7, blockedMs: 700 };
    const defer = { pending: 0, running: 0, accepted: 9, completed: 6, failed: 2, retried: 0, dropped: 1 };
    Object.assign(host.snapshots, {
      eventLoop,
      defer: { ...defer, buffered: 0, stored: 0 },
      routes: [routeSnapshot({ route: '/a', count: 13, aborted: 3 })],
    });
    lines.length = 0;
    vi.advanceTimersByTime(60_000);
    expect(lines.at(-1)).toMatch(
      /^Last 60 s: 13 requests, 3 aborted, 2 event-loop blocks \(340 ms\), 2 pauses of the process \(140 ms\), 3 deferred tasks failed or dropped\. Top routes by total time: 10 × GET \/a .*\. Event loop 12 % busy, p99 delay 4 ms$/,
    );
  });

  it('counts the HTTP request that carries GraphQL once, and names its resolver', async () => {
    host.requests('POST', '/graphql', 200, times(10, 5)).requests('GRAPHQL', 'Query.user', 200, times(10, 4));
    await start();
    vi.advanceTimersByTime(60_000);
    expect(lines[0]).toMatch(/^Last 60 s: 10 requests\. .*10 × GRAPHQL Query\.user/);
  });

  it('comes as often as `summaryMs` says, until the sink is closed', async () => {
    host.requests('GET', '/a', 200, [1]);
    const sink = await start({ format: 'text', summaryMs: 10_000 });
    vi.advanceTimersByTime(10_000);
    expect(lines).toEqual(['Last 10 s: 1 request. Top routes by total time: 1 × GET /a mean 1.0 ms']);
    await sink.close?.();
    host.requests('GET', '/a', 200, [1]);
    vi.advanceTimersByTime(180_000);
    expect(lines).toHaveLength(1);
  });

  it('is of the new application when the sink is used again', async () => {
    host.requests('GET', '/a', 200, times(50, 1));
    const sink = await start();
    vi.advanceTimersByTime(60_000);
    await sink.close?.();
    host = new FakeHost().requests('GET', '/a', 200, times(20, 1));
    await sink.start?.(host);
    vi.advanceTimersByTime(60_000);
    expect(lines[1]).toMatch(/^Last 60 s: 20 requests\. Top routes by total time: 20 × GET \/a/);
  });

  it('is an object for JSON loggers', async () => {
    host.requests('GET', '/a', 200, times(11, 3)).requests('GET', '/a', 500, [3]);
    await start({ format: 'object' });
    vi.advanceTimersByTime(60_000);
    expect(lines).toEqual([
      {
        msg: expect.stringMatching(
          /^Last 60 s: 12 requests, 1 error\. Top routes by total time: 12 × GET \/a/,
        ) as string,
        event: 'summary',
        windowMs: 60_000,
        requests: 12,
        messages: 0,
        errors: 1,
        aborted: 0,
        blocks: 0,
        blockedMs: 0,
        pauses: 0,
        pausedMs: 0,
        deferredLost: 0,
        routes: [{ method: 'GET', route: '/a', count: 12, errors: 1, p50Ms: 3, p95Ms: 3, waits: null }].map((row) => ({
          ...row,
          meanMs: expect.closeTo(3) as number,
          p50Ms: expect.closeTo(3, 0) as number,
          p95Ms: expect.closeTo(3, 0) as number,
        })),
        eventLoop: null,
        resources: null,
      },
    ]);
  });
});
