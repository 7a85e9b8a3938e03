import { describe, expect, it } from 'vitest';
import { statsigSink, type StatsigClient } from '../../../../src/entries/statsig.js';
import { requestRecord } from '../../../fixtures/records.js';
import { FakeHost } from '../../../fixtures/sink-host.js';

/**
 * A stand-in with the shape of `@statsig/statsig-node-core` 0.23, whose native binary cannot run everywhere; what it does
 * was read off the real one.
 */
class CoreLike implements StatsigClient {
  readonly logged: unknown[][] = [];
  result: Promise<{ isSuccess: boolean }> = Promise.resolve({ isSuccess: true });
  logEvent(...event: unknown[]): void {
    this.logged.push(event);
  }
  flushEvents(): Promise<{ isSuccess: boolean }> {
    return this.result;
  }
}

const started = async (client: CoreLike) => {
  const host = new FakeHost();
  const sink = statsigSink({ client, pod: 'p' });
  await sink.start?.(host);
  return { host, sink };
};

describe('statsigSink with a client of the core SDK', () => {
  it('says at boot which package is missing, and how to install it', async () => {
    const { host } = await started(new CoreLike());
    expect(host.reports).toEqual([
      'PERF_ERR_MISSING_PEER: statsigSink() needs the package `@statsig/statsig-node-core`, which is not installed. Run: npm install @statsig/statsig-node-core',
    ]);
  });

  it('logs through logEvent and flushEvents', async () => {
    const client = new CoreLike();
    const { sink } = await started(client);
    await sink.publish([requestRecord()]);
    await sink.flush?.(1_000);
    expect(client.logged.map(([user, name, value]) => [user, name, value])).toEqual([
      [{ userID: 'p' }, 'api_request', 12.5],
      [{ userID: 'p' }, 'pod_latency', 12.5],
    ]);
  });

  it('reports what the SDK says it could not send, and goes on', async () => {
    const client = new CoreLike();
    const { sink, host } = await started(client);
    host.reports.length = 0;
    client.result = Promise.resolve({ isSuccess: false });
    await sink.publish([requestRecord()]);
    await sink.flush?.(1_000);
    client.result = Promise.resolve({ isSuccess: true });
    await sink.publish([requestRecord()]);
    await sink.flush?.(1_000);
    await sink.close?.();
    expect(client.logged).toHaveLength(4);
    expect(host.reports).toEqual([
      'sink "statsig" could not deliver events: the SDK says that the post failed (2 now). Requests are not affected.',
    ]);
  });
});
