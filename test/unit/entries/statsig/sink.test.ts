import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { statsigSink, type StatsigSinkOptions } from '../../../../src/entries/statsig.js';
import { blockRecord, requestRecord, resourceRecord } from '../../../fixtures/records.js';
import { FakeHost } from '../../../fixtures/sink-host.js';
import { StatsigLoopback, type ArrivedEvent } from '../../../fixtures/statsig-server.js';

let statsig: StatsigLoopback;
beforeEach(async () => {
  statsig = await new StatsigLoopback().start();
});
afterEach(() => statsig.stop());

const started = (options: Partial<StatsigSinkOptions> = {}) => {
  const sink = statsigSink({ client: statsig.client(), pod: 'pod-1', ...options });
  const host = new FakeHost();
  void sink.start?.(host);
  return { sink, host };
};

const names = (events: readonly ArrivedEvent[]): string[] => events.map(({ eventName }) => eventName).sort();

describe('statsigSink on the real SDK', () => {
  it('sends one event per request, and the latency of the pod', async () => {
    const { sink } = started();
    await sink.publish([requestRecord(), requestRecord({ durationMs: 20, unit: { userId: 'u7' } })]);
    await sink.flush?.(20_000);
    const events = statsig.events();
    expect(names(events)).toEqual(['api_request', 'api_request', 'pod_latency']);
    expect(events[0]).toMatchObject({ value: 12.5, user: { userID: 'pod-1' } });
    expect(events[1]).toMatchObject({ value: 20, user: { userID: 'u7' } });
    const [latency] = statsig.events('pod_latency');
    expect(latency).toMatchObject({ value: 16.25, metadata: { pod: 'pod-1', count: 2 } });
    expect(latency!.metadata['p95']).toBeCloseTo(20, 0);
    await sink.close?.();
  });

  it('counts only successful requests in the latency of the pod', async () => {
    const { sink } = started();
    await sink.publish([
      requestRecord({ durationMs: 10 }),
      requestRecord({ durationMs: 1_000, status: 500 }),
      requestRecord({ durationMs: 1_000, status: 404 }),
      requestRecord({ durationMs: 1_000, outcome: 'aborted' }),
    ]);
    await sink.flush?.(20_000);
    expect(statsig.events('pod_latency')).toMatchObject([{ value: 10, metadata: { count: 1 } }]);
    await sink.close?.();
  });

  it('ends an interval with every resource sample', async () => {
    const { sink } = started({ requests: 'rollup' });
    await sink.publish([requestRecord(), requestRecord(), resourceRecord()]);
    await sink.publish([requestRecord({ durationMs: 50 }), resourceRecord()]);
    await sink.flush?.(20_000);
    expect(statsig.events('api_request').map(({ value, metadata }) => [value, metadata['count']])).toEqual([
      [12.5, 2],
      [50, 1],
    ]);
    expect(statsig.events('pod_latency').map(({ value }) => value)).toEqual([12.5, 50]);
    expect(statsig.events('pod_resources')).toHaveLength(2);
    await sink.close?.();
  });

  it('sends blocks as events', async () => {
    const { sink } = started();
    await sink.publish([blockRecord()]);
    await sink.flush?.(20_000);
    expect(statsig.events('event_loop_block')).toMatchObject([{ value: 120, metadata: { cause: 'javascript' } }]);
    await sink.close?.();
  });

  it('sends a share of the requests when told to, and counts them all in the latency of the pod', async () => {
    const { sink } = started({ sampleRate: 0.2 });
    await sink.publish(Array.from({ length: 2_000 }, () => requestRecord()));
    await sink.flush?.(20_000);
    const sent = statsig.events('api_request');
    // 400 expected; six standard deviations are 107.
    expect(sent.length).toBeGreaterThan(290);
    expect(sent.length).toBeLessThan(510);
    expect(sent[0]!.metadata['sampleRate']).toBe(0.2);
    expect(statsig.events('pod_latency')[0]!.metadata['count']).toBe(2_000);
    await sink.close?.();
  });

  it('waits for a client that still initialises', async () => {
    const client = statsig.client();
    const { sink, host } = started({ client });
    const initialising = client.initializeAsync();
    await sink.publish(Array.from({ length: 600 }, () => requestRecord()));
    await sink.flush?.(20_000);
    await initialising;
    expect(statsig.events('api_request')).toHaveLength(600);
    expect(host.reports).toEqual([]);
    await sink.close?.();
  });

  it('posts at most 500 events at a time', async () => {
    const { sink } = started();
    await sink.publish(Array.from({ length: 1_700 }, () => requestRecord()));
    await sink.flush?.(20_000);
    const sizes = statsig.accepted.map((post) => post.filter(({ eventName }) => eventName === 'api_request').length);
    expect(Math.max(...sizes)).toBe(500);
    expect(sizes.reduce((a, b) => a + b, 0)).toBe(1_700);
    await sink.close?.();
  });

  it('goes on sending by the clock for one application when another that shares it closes', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { sink } = started();
    await sink.start?.(new FakeHost());
    await sink.close?.();
    await sink.publish([requestRecord()]);
    vi.advanceTimersByTime(10_000);
    await expect.poll(() => statsig.events('api_request').length).toBe(1);
    const timers = vi.getTimerCount();
    await sink.close?.();
    // The others are the SDK's.
    expect(vi.getTimerCount()).toBe(timers - 1);
    vi.useRealTimers();
  });

  it('ends an interval after a minute where no resource sample does', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const { sink } = started({ requests: 'rollup' });
    await sink.publish([requestRecord(), requestRecord()]);
    vi.advanceTimersByTime(50_000);
    expect(statsig.events()).toEqual([]);
    vi.advanceTimersByTime(10_000);
    vi.useRealTimers();
    await expect.poll(() => statsig.events('api_request').length).toBe(1);
    expect(statsig.events('api_request')[0]!.metadata['count']).toBe(2);
    await sink.close?.();
  });

  it('leaves the client to the application', async () => {
    const client = statsig.client();
    const { sink } = started({ client });
    await sink.publish([requestRecord()]);
    await sink.flush?.(20_000);
    await sink.close?.();
    client.logEvent({ userID: 'u1' }, 'checkout');
    await client.flush(20_000);
    expect(statsig.events('checkout')).toHaveLength(1);
  });

  it.each([
    [{ client: {} }, '`statsigSink.client` must be a Statsig client: an object with `logEvent()`, got an object.'],
    [{ requests: 'all' }, '`statsigSink.requests` must be one of `"each"`, `"rollup"`, got `"all"` (string).'],
    [
      { sampleRate: 2 },
      '`statsigSink.sampleRate` must be a share of the requests above 0 and at most 1, got `2` (number).',
    ],
    [
      { requests: 'rollup', sampleRate: 0.5 },
      "`statsigSink.sampleRate` must be 1 with `requests: 'rollup'`, which counts every request, got `0.5` (number).",
    ],
    [{ pod: '' }, '`statsigSink.pod` must be a name, got `""` (string).'],
  ])('refuses %j', (wrong, message) => {
    const options = { client: statsig.client(), ...wrong } as StatsigSinkOptions;
    expect(() => statsigSink(options)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });
});
