import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { recorderOf } from '../fixtures/recorder.js';
import { OncePerCause } from '../../src/core/reporter.js';
import { statsigSink } from '../../src/entries/statsig.js';
import type { StatsigClient } from '../../src/entries/statsig.js';
import { requestRecord, resourceRecord } from '../fixtures/records.js';
import { FakeHost } from '../fixtures/sink-host.js';
import { StatsigLoopback } from '../fixtures/statsig-server.js';

let statsig: StatsigLoopback;
let host: FakeHost;
beforeEach(async () => {
  statsig = await new StatsigLoopback().start();
  host = new FakeHost();
});
afterEach(() => statsig.stop());

const requests = (count: number) => Array.from({ length: count }, () => requestRecord());

describe('statsigSink when Statsig does not answer well', () => {
  it('posts a failing batch a few times within a deadline, not 63 times', async () => {
    const sink = statsigSink({ client: statsig.client({ postLogsRetryBackoff: 1 }) });
    await sink.start?.(host);
    statsig.ingest = 'error';
    await sink.publish(requests(500));
    // Tried now, after 250 and after 750 ms; the next time would be too late, and on a slow machine the third is.
    await sink.flush?.(1_500);
    const withRequests = statsig.posts.filter((post) => post.some(({ eventName }) => eventName === 'api_request'));
    expect([2, 3]).toContain(withRequests.length);
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

  it('sends the intervals of an outage and the later ones once the service is back', async () => {
    const sink = statsigSink({ client: statsig.client(), requests: 'rollup' });
    await sink.start?.(host);
    statsig.ingest = 'error';
    await sink.publish([...requests(10), resourceRecord()]);
    await sink.flush?.(1_000);
    statsig.ingest = 'ok';
    await sink.publish([...requests(4), resourceRecord()]);
    await sink.flush?.(20_000);
    expect(statsig.events('api_request').map(({ metadata }) => metadata['count'])).toEqual([10, 4]);
    await sink.close?.();
  });

  it('holds a bounded number of events while the service hangs, and says what it dropped', async () => {
    const client = statsig.client();
    const logged = vi.spyOn(client, 'logEventObject');
    const sink = statsigSink({ client });
    const warnings: string[] = [];
    const reporter = { log: () => {}, warn: (text: string) => void warnings.push(text), error: () => {} };
    const recorder = recorderOf([sink], new OncePerCause(reporter, () => performance.now()));
    await recorder.start(host, 1_000);
    statsig.ingest = 'hang';
    for (let batch = 0; batch < 60; batch++) {
      for (const record of requests(500)) recorder.push(record);
      await new Promise(setImmediate);
    }
    await recorder.close(200);
    // One batch is in the SDK, 10 000 are held in all; the others were refused. 30 000 requests and one `pod_latency`.
    expect(logged.mock.calls.length).toBe(500);
    expect([...host.counts.values()].reduce((a, b) => a + b)).toBe(30_001);
    expect(host.reports.join('\n')).toMatch(/more than 10000 were waiting/);
    expect(warnings).toEqual([]);
  });

  it('says so once the client was shut down, and throws nothing', async () => {
    const client = statsig.client();
    const sink = statsigSink({ client });
    await sink.start?.(host);
    await sink.publish(requests(1));
    await sink.flush?.(20_000);
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
    const sink = statsigSink({ client });
    await sink.start?.(host);
    await sink.publish(requests(1));
    await sink.flush?.(1_000);
    expect(host.reports.join()).toContain('secret-….json');
    expect(host.reports.join()).not.toContain('AbC');
    await sink.close?.();
  });

  it('reports a key that the SDK refuses', async () => {
    const client: StatsigClient = {
      initializeAsync: () => Promise.reject(new Error('Invalid key provided')),
      logEvent: () => {},
      flush: () => Promise.resolve(),
    };
    const sink = statsigSink({ client });
    await sink.start?.(host);
    host.reports.length = 0;
    await sink.publish(requests(2));
    await sink.flush?.(1_000);
    expect(host.reports[0]).toMatch(/could not be initialised: Invalid key provided \(3 now\)/);
    await sink.close?.();
  });
});
