import { Logger, type LoggerService } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loggerSink, type PerfSnapshot, type RouteSnapshot } from '../../../src/index.js';

const route = (path: string, count: number, p95: number, errors = 0): RouteSnapshot => ({
  method: 'GET',
  route: path,
  handler: null,
  count,
  aborted: 0,
  inFlight: 0,
  errors,
  statuses: { '1xx': 0, '2xx': count - errors, '3xx': 0, '4xx': 0, '5xx': errors },
  durationMs: { mean: 1, p50: 1, p90: 2, p95, p99: 5, max: 9 },
  over: [],
  blockedMs: 0,
  time: null,
  upstream: [],
});
const snapshotOf = (routes: RouteSnapshot[]): PerfSnapshot => ({
  at: 0,
  routes,
  eventLoop: { utilization: 0.123, delayMs: { p50: 0, p99: 4.4, max: 9 }, blocks: 0, blockedMs: 0 },
  resources: null,
  defer: null,
  compression: null,
  upstream: [],
  findings: [],
});

describe('the summary of a minute', () => {
  const lines: unknown[] = [];
  const keep = (message: unknown): void => void lines.push(message);
  const logger: LoggerService = { log: keep, warn: keep, error: keep };
  beforeEach(() => {
    vi.useFakeTimers();
    lines.length = 0;
    Logger.overrideLogger(logger);
  });
  afterEach(() => {
    vi.useRealTimers();
    Logger.overrideLogger(true);
  });
  const start = async (format: 'text' | 'object', snapshot: () => PerfSnapshot) => {
    const sink = loggerSink({ format });
    await sink.start?.({ snapshot, histograms: () => [], get: () => {} });
    return sink;
  };

  it('names the slowest routes, counts what is new since the last one, and is silent when nothing came', async () => {
    let routes = [route('/a', 10, 3), route('', 5, 40), route('/c', 7, 20, 2), route('/d', 1, 100)];
    const sink = await start('text', () => snapshotOf(routes));
    vi.advanceTimersByTime(60_000);
    expect(lines).toEqual([
      '23 requests in the last minute, 2 errors since start; slowest: GET /d p95 100 ms, GET (no route) p95 40 ms, GET /c p95 20 ms; event loop 12 % busy, p99 delay 4 ms',
    ]);
    vi.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(1);
    routes = [route('/a', 11, 3)];
    routes.push(route('', 5, 40), route('/c', 7, 20, 2), route('/d', 1, 100));
    vi.advanceTimersByTime(60_000);
    expect(lines[1]).toMatch(/^1 request in the last minute,/);
    await sink.close?.();
    vi.advanceTimersByTime(180_000);
    expect(lines).toHaveLength(2);
  });

  it('is an object for JSON loggers', async () => {
    const sink = await start('object', () => snapshotOf([route('/a', 4, 3, 1)]));
    vi.advanceTimersByTime(60_000);
    expect(lines).toEqual([
      {
        msg: expect.stringMatching(/^4 requests in the last minute, 1 errors? since start; slowest: GET \/a/) as string,
        event: 'summary',
        requests: 4,
        routes: [{ method: 'GET', route: '/a', count: 4, errors: 1, p95Ms: 3 }],
        eventLoop: snapshotOf([]).eventLoop,
        resources: null,
      },
    ]);
    await sink.close?.();
  });
});
