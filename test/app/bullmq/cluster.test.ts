import { expect, it, onTestFinished } from 'vitest';
import { startRedis } from '../../../scripts/redis.mjs';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { ownCluster } from '../../fixtures/redis.js';
import { until } from '../../fixtures/until.js';
import { NO_WORKER } from '../../unit/defer/durable-entry.js';
import { jobNamed } from '../../unit/contract/durable-store.contract.js';

const LONG = process.env['PERF_LONG'] !== undefined;

async function started() {
  const { cluster, nodes, admins } = await ownCluster();
  const ran: string[] = [];
  const reports: string[] = [];
  const store = bullmqStore({ connection: cluster, queue: 'mail' });
  await store.start({
    ...NO_WORKER,
    run: async (jobs) => void ran.push(...jobs.map(({ id }) => id)),
    report: (cause) => reports.push(cause),
  });
  store.startWorker?.();
  onTestFinished(async () => {
    await store.stopWorker(1_000);
    await store.close();
  });
  const slot = Number(await admins[0].call('CLUSTER', 'KEYSLOT', '{bull}:mail:wait'));
  const at = slot < 8_192 ? 0 : 1;
  const add = (id: string): Promise<void> =>
    until(`${id} is stored`, () => store.add([jobNamed(id)], { batch: false }).then(() => true, () => false)); // prettier-ignore
  return { node: nodes[at], admin: admins[at], add, ran, reports };
}

it('a worker in a Cluster goes on after the server of its queue was away', async () => {
  const { node, add, ran } = await started();
  await add('first');
  await until('it to run', () => ran.includes('first'));
  await node.stop({ keepData: true });
  const again = await startRedis({ own: true, cluster: true, port: node.port, dir: node.dir! });
  onTestFinished(() => again.stop());
  await add('second');
  await until('the next to run', () => ran.includes('second'));
});

it.runIf(LONG)('a worker in a Cluster does not press a server that refuses its commands', async () => {
  const { admin, add, ran, reports } = await started();
  await add('first');
  await until('it to run', () => ran.includes('first'));
  await admin.config('SET', 'maxmemory', '1');
  await until('the refusal to be told', () => reports.some((text) => text.includes('OOM')));
  // Tried again after a second.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const [, refusals = '0'] = /errorstat_OOM:count=(\d+)/.exec(await admin.info('errorstats')) ?? [];
  expect(Number(refusals)).toBeLessThan(20);
  await admin.config('SET', 'maxmemory', '0');
  await add('second');
  await until('the next to run', () => ran.includes('second'));
});
