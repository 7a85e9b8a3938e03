import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import statsigNode from 'statsig-node';
import { recorderOf } from '../../fixtures/recorder.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { statsigSink, type StatsigClient, type StatsigSinkOptions } from '../../../src/entries/statsig.js';
import type { PerfSink } from '../../../src/index.js';
import { requestRecord, resourceRecord } from '../../fixtures/records.js';
import { FakeHost } from '../../fixtures/sink-host.js';
import { StatsigLoopback, type Ingest } from '../../fixtures/statsig-server.js';
import { until } from '../../fixtures/until.js';

let statsig: StatsigLoopback;
let host: FakeHost;
/** For a flush that ends once everything has arrived. */
const AMPLE_MS = 20_000;
beforeEach(async () => {
  statsig = await new StatsigLoopback().start();
  host = new FakeHost();
});
afterEach(async () => {
  vi.useRealTimers();
  await statsig.stop();
});

const requests = (count: number) => Array.from({ length: count }, () => requestRecord());
const arrived = (): number => statsig.events('api_request').length;
/** Events reported as lost, `pod_latency` among them. */
const lost = (): number => [...host.counts.values()].reduce((sum, count) => sum + count, 0);
const postsWithRequests = (): number =>
  statsig.posts.filter((post) => post.some(({ eventName }) => eventName === 'api_request')).length;

/** A recorder that has started the sink, what it warns of, and how many records it has lost. */
async function recording(sink: PerfSink) {
  const warnings: string[] = [];
  const report = new OncePerCause({ log() {}, error() {}, warn: (text) => warnings.push(text) }, () =>
    performance.now(),
  );
  const reported = vi.spyOn(report, 'report');
  const recorder = recorderOf([sink], report);
  await recorder.start(() => host, 1_000);
  const lostIn = ([cause, , count = 1]: Parameters<OncePerCause['report']>): number =>
    cause.endsWith('lost records') ? count : 0;
  const lost = (): number => reported.mock.calls.reduce((sum, call) => sum + lostIn(call), 0);
  return { recorder, warnings, lost };
}

const started = async (options: Partial<StatsigSinkOptions> = {}): Promise<PerfSink> => {
  const sink = statsigSink({ client: statsig.client(), ...options });
  await sink.start?.(host);
  return sink;
};

describe('statsigSink when Statsig does not answer well', () => {
  it('posts a failing batch once, not 63 times', async () => {
    const sink = await started({ client: statsig.client({ postLogsRetryBackoff: 1 }) });
    statsig.ingest = 'error';
    await sink.publish(requests(400));
    await sink.flush?.(AMPLE_MS);
    expect(postsWithRequests()).toBe(1);
    await sink.close?.();
  });

  it('leaves no event with the SDK, whose own timer would amplify it', async () => {
    const client = statsig.client();
    const logged = vi.spyOn(client, 'logEventObject');
    const sink = await started({ client });
    await sink.publish(requests(3));
    expect(logged).not.toHaveBeenCalled();
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toBe(3);
    await sink.close?.();
  });

  it('without the sink the SDK does amplify, so the test above can fail', async () => {
    const client = statsig.client({ postLogsRetryBackoff: 1, postLogsRetryLimit: 2 });
    await client.initializeAsync();
    statsig.ingest = 'error';
    client.logEvent({ userID: 'u' }, 'api_request', 1);
    await client.flush();
    expect(statsig.posts.length).toBe(7);
  });

  it.each(['error', 'torn', 429, 400] satisfies Ingest[])(
    'goes on with later events after %s, and sends no batch twice',
    async (ingest) => {
      const sink = await started({ requests: 'rollup' });
      statsig.ingest = ingest;
      await sink.publish([...requests(10), resourceRecord()]);
      await sink.flush?.(AMPLE_MS);
      statsig.ingest = 'ok';
      await sink.publish([...requests(4), resourceRecord()]);
      await sink.flush?.(AMPLE_MS);
      const counts = statsig.posts
        .flat()
        .filter(({ eventName }) => eventName === 'api_request')
        .map(({ metadata }) => metadata['count']);
      expect(counts).toEqual([10, 4]);
      await sink.close?.();
    },
  );

  it('counts a batch that gets no answer in time as lost, and goes on', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const sink = await started();
    statsig.ingest = 'hang';
    const published = sink.publish(requests(500));
    while (postsWithRequests() === 0) await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(5_000);
    await published;
    expect(host.reports).toEqual([
      'sink "statsig" could not deliver events: no answer within 5000 ms (500 now). Requests are not affected.',
    ]);
    // The SDK gives the post up by itself.
    await vi.advanceTimersByTimeAsync(100);
    vi.useRealTimers();
    statsig.ingest = 'ok';
    await sink.publish(requests(5));
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toBe(5);
    expect(lost()).toBe(500);
    await sink.close?.();
  });

  it('waits for a slow answer rather than cutting it off', async () => {
    const sink = await started();
    statsig.delayMs = 400;
    await sink.publish(requests(700));
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toBe(700);
    expect(host.reports).toEqual([]);
    await sink.close?.();
  });

  it('counts what was not delivered when the application closes', async () => {
    const { recorder, lost, warnings } = await recording(statsigSink({ client: statsig.client() }));
    statsig.ingest = 'hang';
    for (const record of requests(1_234)) recorder.push(record);
    await recorder.close(200);
    expect(lost()).toBe(1_234);
    const late = await recording(statsigSink({ client: statsig.client() }));
    for (const record of requests(3)) late.recorder.push(record);
    await late.recorder.close(200);
    // `pod_latency` of the interval is among them.
    expect(late.warnings).toEqual([expect.stringMatching(/failed in flush\(\): no answer to 4 events in time/)]);
    expect([warnings.length, host.reports]).toEqual([2, []]);
  });

  it('holds a bounded number of events while the service hangs, and says what it dropped', async () => {
    const client = statsig.client();
    const logged = vi.spyOn(client, 'logEventObject');
    const { recorder, lost } = await recording(statsigSink({ client }));
    statsig.ingest = 'hang';
    for (let batch = 0; batch < 60; batch++) {
      for (const record of requests(500)) recorder.push(record);
      await new Promise(setImmediate);
    }
    await recorder.close(200);
    // One batch got no answer, and others waited; there was no room for the rest.
    expect(logged.mock.calls.length).toBe(500);
    expect(lost()).toBe(30_000);
    expect(host.reports).toEqual([]);
  });
});

describe('statsigSink and what the SDK says', () => {
  it('reports it once the client was shut down, and throws nothing', async () => {
    const client = statsig.client();
    const sink = await started({ client });
    await sink.publish(requests(1));
    await sink.flush?.(AMPLE_MS);
    await client.shutdownAsync(100);
    await sink.publish(requests(3));
    await sink.flush?.(1_000);
    expect(host.reports).toHaveLength(1);
    expect(host.reports[0]).toMatch(/^sink "statsig" could not deliver events: .*initialize.* \(4 now\)/);
    await sink.close?.();
  });

  it('never says the secret key', async () => {
    const client: StatsigClient = {
      logEvent: () => {
        throw new Error('GET https://api.statsig.com/v1/download_config_specs/secret-AbC-123.json failed');
      },
      flush: () => Promise.resolve(),
    };
    const sink = await started({ client });
    await sink.publish(requests(1));
    await sink.flush?.(1_000);
    expect(host.reports.join()).toContain('secret-….json');
    expect(host.reports.join()).not.toContain('AbC');
    await sink.close?.();
  });

  it('reports a key that the SDK refuses', async () => {
    const initializeAsync = vi.fn<() => Promise<void>>().mockRejectedValue(new Error('Invalid key provided'));
    const logEvent = vi.fn<StatsigClient['logEvent']>();
    const sink = await started({ client: { initializeAsync, logEvent, flush: () => Promise.resolve() } });
    // Gates are asked before the first events are due.
    expect(initializeAsync).toHaveBeenCalledOnce();
    await sink.publish(requests(2));
    await sink.flush?.(1_000);
    expect(host.reports).toEqual([expect.stringMatching(/could not be initialised: Invalid key provided \(3 now\)/)]);
    expect(logEvent).not.toHaveBeenCalled();
    await sink.close?.();
  });

  it('leaves a client alone that was shut down, where a second application has its sink', async () => {
    const initializeAsync = vi.fn<() => Promise<void>>().mockResolvedValue();
    const sink = await started({ client: { initializeAsync, logEvent: () => {}, flush: () => Promise.resolve() } });
    await sink.close?.();
    await sink.start?.(host);
    expect(initializeAsync).toHaveBeenCalledOnce();
    await sink.close?.();
  });
});

describe("the application's own use of the client that statsigSink has", () => {
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
    await sink.publish(requests(110));
    await sink.flush?.(AMPLE_MS);
    await until('all have arrived', () => arrived() === 110);
    expect(lost()).toBe(0);
    await sink.close?.();
  });

  it('may be the `Statsig` object', async () => {
    const { api } = statsig;
    // What `require('statsig-node')` gives; its types know it as a member of that name only.
    const Statsig = statsigNode as unknown as (typeof statsigNode)['Statsig'];
    const sink = await started({ client: Statsig });
    await sink.publish(requests(1));
    await sink.flush?.(AMPLE_MS);
    expect(host.reports.splice(0)[0]).toMatch(/Call and wait for initialize/);
    const offline = {
      initStrategyForIP3Country: 'none',
      initStrategyForIDLists: 'none',
      disableDiagnostics: true,
    } as const;
    await Statsig.initialize('secret-loopback', { api, disableRulesetsSync: true, ...offline });
    await sink.publish(requests(4));
    await sink.flush?.(AMPLE_MS);
    expect(arrived()).toBe(4);
    await sink.close?.();
    await Statsig.shutdownAsync(100);
  });
});
