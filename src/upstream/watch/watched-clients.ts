import { PerfError } from '../../core/perf.error.js';
import type { Upstream } from '../upstream.js';
import { knex } from './knex.js';
import { mongodb } from './mongodb.js';
import { pgClient, pgPool } from './pg.js';
import { prisma } from './prisma.js';
import { typeorm } from './typeorm.js';
import { Watching, type Unwatch, type WatchableClient } from './watched-client.js';

const WATCHABLE: readonly WatchableClient[] = [pgClient, pgPool, mongodb, knex, prisma, typeorm];

/** Clients that one application watches by their own events, until it closes. */
export class WatchedClients {
  private readonly watched = new Map<object, { watching: Watching; unwatch: Unwatch }>();
  private closed = false;

  constructor(private readonly upstream: Upstream) {}

  /** A client twice is watched once. @throws PERF_ERR_WATCH */
  watch(client: object, target: string | undefined): void {
    if (this.closed || this.watched.has(client)) return;
    const kind = isObject(client) ? WATCHABLE.find((one) => one.recognizes(client)) : undefined;
    if (kind === undefined) {
      if (isObject(client) && tellsByChannel(client)) return;
      const known = WATCHABLE.map(({ name }) => name).join(', ');
      throw new PerfError(
        'PERF_ERR_WATCH',
        `perf.watch() takes one of: ${known}; it got ${nameOf(client)}. Put \`perf.timed('name of the target', () => …)\` around the calls of other clients.`,
      );
    }
    const watching = new Watching(this.upstream, target);
    this.watched.set(client, { watching, unwatch: kind.watch(client as never, watching) });
  }

  close(): void {
    this.closed = true;
    for (const { watching, unwatch } of this.watched.values()) {
      watching.active = false;
      unwatch();
    }
    this.watched.clear();
  }
}

const isObject = (client: unknown): client is object =>
  (typeof client === 'object' && client !== null) || typeof client === 'function';

/** ioredis, redis and mysql2 are heard already, watched or not. */
const tellsByChannel = (client: object): boolean =>
  ('sendCommand' in client && ('duplicate' in client || 'multi' in client)) ||
  ('execute' in client && 'query' in client && 'format' in client);

/** Never its content: a client holds passwords. */
const nameOf = (given: unknown): string => {
  if (!isObject(given)) return given === null ? 'null' : typeof given;
  const { constructor } = given as { constructor?: { name?: unknown } };
  return typeof constructor?.name === 'string' && /^\w{1,64}$/.test(constructor.name) ? constructor.name : typeof given;
};
