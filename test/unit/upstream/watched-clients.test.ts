import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { Upstream } from '../../../src/upstream/upstream.js';
import { watchTypeOrm } from '../../../src/upstream/watch/typeorm.js';
import { WatchedClients } from '../../../src/upstream/watch/watched-clients.js';

/** As TypeORM's: `initialize()` makes its list of subscribers anew. */
class DataSource {
  isInitialized = true;
  subscribers: { beforeQuery(event: object): Promise<void> }[] = [];
  createQueryRunner() {}
  constructor(readonly options: object = { type: 'postgres' }) {}
  initialize() {
    this.subscribers = [];
  }
}
// Nothing is asked.
const upstream = {} as Upstream;

it('hears a DataSource again that was made ready again', () => {
  const clients = new WatchedClients(upstream);
  const source = new DataSource();
  const watched = () => {
    clients.watch(source);
    clients.watch(source);
    return source.subscribers.length;
  };
  expect(watched()).toBe(1);
  source.initialize();
  expect(watched()).toBe(1);
  clients.close();
  expect(source.subscribers).toEqual([]);
});

it('keeps no client that the application has forgotten', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const clients = new WatchedClients(upstream);
  const gone = new WeakRef(
    (() => {
      const source = new DataSource();
      clients.watch(source);
      return source;
    })(),
  );
  await expect.poll(() => (collect(), gone.deref() === undefined)).toBe(true);
  clients.close();
});

it('books a read on the replica, and on all of them where there are several', async () => {
  const [main, one, two] = ['main', 'one', 'two'].map((host) => ({ host, port: 5432, database: 'shop' }));
  const asked = async (slaves: unknown[], mode: string): Promise<string[]> => {
    const source = new DataSource({ type: 'postgres', replication: { master: main, slaves } });
    const hosts: string[] = [];
    watchTypeOrm(source, {
      begin: ({ host }) => (hosts.push(host), () => {}),
      ended() {},
    });
    await source.subscribers[0]!.beforeQuery({ queryRunner: { getReplicationMode: () => mode }, query: 'SELECT 1' });
    return hosts;
  };
  expect(await asked([one], 'slave')).toEqual(['one:5432/shop']);
  expect(await asked([one, one], 'slave')).toEqual(['one:5432/shop']);
  expect(await asked([one, two], 'slave')).toEqual(['replicas/shop']);
  expect(await asked([], 'slave')).toEqual(['main:5432/shop']);
  expect(await asked([one], 'master')).toEqual(['main:5432/shop']);
});
