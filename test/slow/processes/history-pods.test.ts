import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, inject, it } from 'vitest';
import { dataOf } from '../../fixtures/dashboard.js';
import { ownRedis } from '../../fixtures/redis.js';
import { until } from '../../fixtures/until.js';

/** A read that took long is made again after a pause of many times that. */
const WAIT_MS = 80_000;
const TOKEN = 'the-token-of-all-three-pods';
const pods: ChildProcess[] = [];
afterEach(() => {
  for (const pod of pods.splice(0)) pod.kill('SIGKILL');
});

async function startPod(port: number, release: string): Promise<{ url: string; pod: ChildProcess }> {
  const env = { ...process.env, PERF_TOKEN: TOKEN, REDIS_PORT: String(port), PREFIX: 'three', RELEASE: release };
  const pod = fork(`${inject('compiledFixtures')}/pod.process.js`, [], { execArgv: [], env });
  pods.push(pod);
  const [url] = (await once(pod, 'message')) as [string];
  return { url, pod };
}

const askFor = async (url: string, times: number): Promise<void> => {
  for (let i = 0; i < times; i++) expect((await fetch(`${url}/hello`)).status).toBe(200);
};

/** The requests of the fleet, as one pod answers. Each pod that is read adds what it has counted. */
const totalAt = async (url: string): Promise<number> => (await dataOf(url, TOKEN)).totals!.count;

it('three pods in processes of their own: each answers for all, to the request, also after two have ended', async () => {
  const { port } = await ownRedis();
  const [a, b, c] = [await startPod(port, '1.0.0'), await startPod(port, '1.0.0'), await startPod(port, '1.1.0')];
  await Promise.all([askFor(a.url, 30), askFor(b.url, 50), askFor(c.url, 7)]);
  for (const { url } of [a, b, c])
    await until(
      `87 requests at ${url}`,
      async () => {
        for (const other of [a, b, c]) await totalAt(other.url);
        return (await totalAt(url)) === 87;
      },
      WAIT_MS,
    );
  // One closes in order, and writes what it has counted since; one is killed, after what it has counted was read.
  await askFor(b.url, 5);
  const closed = once(b.pod, 'exit');
  b.pod.kill('SIGTERM');
  await closed;
  const killed = once(c.pod, 'exit');
  c.pod.kill('SIGKILL');
  await killed;
  await until('92 requests at the pod that is left', async () => (await totalAt(a.url)) === 92, WAIT_MS);
  const again = await startPod(port, '1.1.0');
  await until('92 requests at a new pod', async () => (await totalAt(again.url)) === 92, WAIT_MS);
}, 300_000);
