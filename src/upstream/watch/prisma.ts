import { PerfError } from '../../core/perf.error.js';
import { hasMethods, type Watch } from './watch.js';

/** https://www.prisma.io/docs/orm/prisma-client/observability-and-logging/logging#event-based-logging */
interface QueryEvent {
  readonly query: string;
  /** Milliseconds. */
  readonly duration: number;
}
interface Prisma {
  /** Private: its absence proves nothing. */
  readonly _engineConfig?: { readonly logQueries?: unknown };
}

/**
 * Prisma emits a query at its end, in the async context of its first connection: such a call is never placed on a request.
 * @throws PERF_ERR_WATCH when the client emits no queries
 */
export const watchPrisma: Watch = (client, upstream, findTarget) => {
  if (!hasMethods(client, '$connect', '$disconnect')) return null;
  const { _engineConfig } = client as Prisma;
  if (!hasMethods(client, '$on') || (_engineConfig !== undefined && _engineConfig.logQueries !== true))
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a Prisma client that emits no queries. Make it with ' +
        "`new PrismaClient({ log: [{ emit: 'event', level: 'query' }] })`, and watch it before `$extends()`.",
    );
  const target = findTarget('sql', 'prisma', 'database');
  let stopped = false;
  // There is no `$off`.
  client.$on('query', ({ duration }: QueryEvent) => {
    if (!stopped) upstream.endedUnplaced(target, duration);
  });
  return () => (stopped = true);
};
