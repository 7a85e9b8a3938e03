import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { Upstream } from '../../../src/upstream/upstream.js';
import { WatchedClients } from '../../../src/upstream/watch/watched-clients.js';

/** As TypeORM's: `initialize()` makes its list of subscribers anew. */
class DataSource {
  isInitialized = true;
  subscribers: object[] = [];
  options = { type: 'postgres' };
  createQueryRunner() {}
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
