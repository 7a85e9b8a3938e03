import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import statsigNode from 'statsig-node';
import { statsigSink, type StatsigClient, type StatsigSinkOptions } from '../../src/entries/statsig.js';
import type { PerfSink } from '../../src/index.js';
import { requestRecord } from '../fixtures/records.js';
import { FakeHost } from '../fixtures/sink-host.js';
import { StatsigLoopback, type Ingest } from '../fixtures/statsig-server.js';

let statsig: StatsigLoopback;
let host: FakeHost;
let numbered = 0;
/** How to wait for what comes at once on an idle machine. */
const SOON = { timeout: 20_000, interval: 5 };
/** For a flush that ends once everything has arrived. */
const AMPLE_MS = 20_000;
beforeEach(async () => {
  statsig = await new StatsigLoopback().start();
  host = new FakeHost();
  numbered = 0;
});
afterEach(async () => {
  vi.useRealTimers();
  await statsig.stop();
});

/** Requests that can be told apart by their duration. */
const requests = (count: number) => Array.from({ length: count }, () => requestRecord({ durationMs: ++numbered }));
const arrived = (): number[] => statsig.events('api_request').map(({ value }) => value!);
/** Events reported as lost, `pod_latency` among them. */
const lost = (): number =>
  [...host.counts].reduce((sum, [cause, count]) => (cause.includes('could not deliver') ? sum + count : sum), 0);

const started = async (options: Partial<StatsigSinkOptions> = {}): Promise<PerfSink> => {
  const client = statsig.client();
  await client.initializeAsync();
  const sink = statsigSink({ client, ...options });
  await sink.start?.(host);
  return sink;
};

const outages: Record<string, { begin: () => unknown; end: () => unknown }> = {
  'refuses connections': { begin: () => statsig.down(), end: () => statsig.start() },
  'answers 500': { begin: () => (statsig.ingest = 'error'), end: () => (statsig.ingest = 'ok') },
  'answers 503': { begin: () => (statsig.ingest = 503), end: () => (statsig.ingest = 'ok') },
  'answers 429': { begin: () => (statsig.ingest = 429), end: () => (statsig.ingest = 'ok') },
};

describe.each(Object.entries(outages))('statsigSink while Statsig %s', (_what, { begin, end }) => {
  it('keeps everything, and delivers it once when Statsig is back', async () => {
    const sink = await started();
    await begin();
    await sink.publish(requests(700));
    await sink.flush?.(200);
    await sink.publish(requests(100));
    await sink.flush?.(200);
    await vi.waitFor(() => expect(host.reports.join()).toMatch(/could not post: /), SOON);
    expect(arrived()).toEqual([]);
    await end();
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toEqual(Array.from({ length: 800 }, (_, i) => i + 1));
    expect(lost()).toBe(0);
    expect(host.reports.join()).toMatch(/could not post: .* events are kept and posted again/);
    await sink.close?.();
    expect(lost()).toBe(0);
  });

  it('comes back within one flush, as on shutdown', async () => {
    const sink = await started();
    await begin();
    await sink.publish(requests(20));
    const flushed = sink.flush?.(AMPLE_MS);
    await vi.waitFor(() => expect(host.reports).toHaveLength(1), SOON);
    await end();
    await flushed;
    expect(arrived()).toHaveLength(20);
    await sink.close?.();
    expect(lost()).toBe(0);
  });

  it('counts and reports as lost exactly what is left when the application closes', async () => {
    const sink = await started();
    await sink.publish(requests(30));
    await sink.flush?.(AMPLE_MS);
    await begin();
    await sink.publish(requests(1_234));
    const startedMs = performance.now();
    await sink.flush?.(200);
    await sink.close?.();
    // Against the minutes for which a failing post is tried again.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(arrived()).toHaveLength(30);
    // One `pod_latency` of its second interval is among them.
    expect(lost()).toBe(1_234 + 1);
    expect(host.reports.at(-1)).toMatch(/not delivered before the application closed; .* \(1235 now\)/);
  });
});

describe('statsigSink when it cannot know whether a post arrived', () => {
  it.each(['torn', 'hang'] satisfies Ingest[])('never sends it twice, and counts it as lost: "%s"', async (ingest) => {
    const sink = await started();
    statsig.ingest = ingest;
    await sink.publish(requests(40));
    await sink.flush?.(100);
    await vi.waitFor(() => expect(statsig.posts.flat().length).toBeGreaterThanOrEqual(40), SOON);
    if (ingest === 'torn') await vi.waitFor(() => expect(lost()).toBe(41), SOON);
    if (ingest === 'hang') await sink.close?.();
    statsig.ingest = 'ok';
    await sink.start?.(host);
    await sink.flush?.(500);
    expect(statsig.posts.flat().filter(({ eventName }) => eventName === 'api_request')).toHaveLength(40);
    expect(lost()).toBe(41);
    await sink.close?.();
  });

  it('waits for a slow answer rather than cutting it off', async () => {
    const sink = await started();
    statsig.delayMs = 400;
    await sink.publish(requests(700));
    await sink.flush?.(100);
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toHaveLength(700);
    expect(host.reports).toEqual([]);
    await sink.close?.();
  });
});

describe('statsigSink in a long outage', () => {
  it('holds 10 000 events at the most, and counts those that came on top', async () => {
    const sink = await started();
    statsig.ingest = 'error';
    for (let batch = 0; batch < 26; batch++) await sink.publish(requests(500));
    await sink.flush?.(100);
    statsig.ingest = 'ok';
    await sink.flush?.(AMPLE_MS);
    const distinct = new Set(arrived());
    expect(distinct.size).toBe(arrived().length);
    expect(statsig.events().length + lost()).toBe(13_000 + 1);
    expect(distinct.size).toBeGreaterThanOrEqual(9_999);
    expect(distinct.size).toBeLessThanOrEqual(10_000);
    expect(host.reports.join()).toContain('more than 10000 were waiting');
    await sink.close?.();
  });

  it('tries one post every ten seconds by itself, and dates events by when they happened', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const sink = await started();
    statsig.ingest = 'error';
    const startedAt = Date.now() - 90_000;
    await sink.publish([requestRecord({ startedAt, durationMs: 500 }), ...requests(900)]);
    for (let posts = 1; posts <= 3; posts++) {
      await vi.waitFor(() => expect(statsig.posts).toHaveLength(posts), SOON);
      await vi.waitFor(() => expect(host.reports).toHaveLength(posts), SOON);
      vi.advanceTimersByTime(10_000);
    }
    statsig.ingest = 'ok';
    vi.advanceTimersByTime(10_000);
    await vi.waitFor(() => expect(arrived()).toHaveLength(901), SOON);
    expect(statsig.events('api_request').find(({ value }) => value === 500)!.time).toBe(startedAt + 500);
    await sink.close?.();
  });

  it('gives a post up after ten minutes, so that it cannot hold up others for ever', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const sink = await started();
    statsig.ingest = 'error';
    await sink.publish(requests(500));
    await vi.waitFor(() => expect(host.reports).toHaveLength(1), SOON);
    expect(lost()).toBe(0);
    vi.advanceTimersByTime(600_000);
    await vi.waitFor(() => expect(lost()).toBe(500), SOON);
    expect(statsig.posts).toHaveLength(2);
    await sink.close?.();
  });

  it('gives up a batch that Statsig alone refuses, and goes on with the others', async () => {
    const sink = await started();
    statsig.ingest = 400;
    await sink.publish(requests(10));
    await sink.flush?.(100);
    await vi.waitFor(() => expect(lost()).toBe(11), SOON);
    statsig.ingest = 'ok';
    await sink.publish(requests(5));
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toEqual([11, 12, 13, 14, 15]);
    expect(lost()).toBe(11);
    expect(host.reports).toEqual([
      'sink "statsig" could not deliver events: Statsig answered with status 400 (11 now). Requests are not affected.',
    ]);
    await sink.close?.();
  });
});

describe("the application's own use of the client that statsigSink has", () => {
  it('has its events kept too, when they travel in a post of the sink that fails', async () => {
    const client = statsig.client();
    const sink = await started({ client });
    await client.initializeAsync();
    statsig.ingest = 'error';
    client.logEvent({ userID: 'u1' }, 'checkout', 3);
    await sink.publish(requests(1));
    await sink.flush?.(100);
    statsig.ingest = 'ok';
    await sink.flush?.(AMPLE_MS);
    expect(statsig.events('checkout')).toHaveLength(1);
    await sink.close?.();
  });

  it('posts as before outside the sink: nothing is left on the client', async () => {
    const client = statsig.client({ postLogsRetryLimit: 1, postLogsRetryBackoff: 1 });
    const sink = await started({ client });
    await sink.publish(requests(3));
    await sink.flush?.(AMPLE_MS);
    statsig.posts.length = 0;
    statsig.ingest = 'error';
    client.logEvent({ userID: 'u1' }, 'checkout');
    await client.flush();
    // The SDK's own rule, 2^(n+1)-1 posts.
    expect(statsig.posts).toHaveLength(3);
    await sink.close?.();
  });

  it('may have made the buffer of the SDK smaller than a batch', async () => {
    const sink = await started({ client: statsig.client({ loggingMaxBufferSize: 20 }) });
    statsig.ingest = 'error';
    await sink.publish(requests(110));
    await sink.flush?.(100);
    statsig.ingest = 'ok';
    await sink.flush?.(AMPLE_MS);
    expect(arrived().sort((a, b) => a - b)).toEqual(Array.from({ length: 110 }, (_, i) => i + 1));
    expect(lost()).toBe(0);
    await sink.close?.();
  });

  it('may be the `Statsig` object', async () => {
    const { api } = statsig;
    // What `require('statsig-node')` gives; its types know it as a member of that name only.
    const Statsig = statsigNode as unknown as (typeof statsigNode)['Statsig'];
    const sink = await started({ client: Statsig });
    await sink.publish(requests(1));
    await sink.flush?.(100);
    await vi.waitFor(() => expect(host.reports).not.toEqual([]), SOON);
    expect(host.reports.splice(0)[0]).toMatch(/Call and wait for initialize/);
    const offline = {
      initStrategyForIP3Country: 'none',
      initStrategyForIDLists: 'none',
      disableDiagnostics: true,
    } as const;
    await Statsig.initialize('secret-loopback', { api, disableRulesetsSync: true, ...offline });
    statsig.ingest = 'error';
    await sink.publish(requests(4));
    await sink.flush?.(100);
    statsig.ingest = 'ok';
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toHaveLength(4);
    await sink.close?.();
    await Statsig.shutdownAsync(100);
  });

  it('is told at boot when the insides of the client are not those that are known', async () => {
    const client: StatsigClient = { logEvent: vi.fn<StatsigClient['logEvent']>(), flush: () => Promise.resolve() };
    const sink = await started({ client });
    expect(host.reports).toEqual([expect.stringMatching(/does not show what becomes of its posts/)]);
    await sink.publish(requests(3));
    await sink.flush?.(500);
    expect(client.logEvent).toHaveBeenCalledTimes(4);
    await sink.close?.();
    expect(lost()).toBe(0);
  });

  it('is silent about events that the client is told not to post', async () => {
    const sink = await started({ client: statsig.client({ localMode: true }) });
    await sink.publish(requests(3));
    await sink.flush?.(500);
    await sink.close?.();
    expect(host.reports).toEqual([]);
    expect(statsig.posts).toEqual([]);
  });
});
