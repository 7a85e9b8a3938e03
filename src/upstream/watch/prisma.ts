import { hasMethods, type Hearer } from './watched-call.js';

/** https://www.prisma.io/docs/orm/prisma-client/observability-and-logging/logging#event-based-logging */
interface QueryEvent {
  readonly query: string;
  /** Milliseconds. */
  readonly duration: number;
}

/**
 * Prisma tells of a query when it is over, and its engine does so in the context of whoever has connected first: such a call is
 * never placed on a request.
 */
export function watchPrisma(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, '$on', '$connect', '$disconnect')) return null;
  let stopped = false;
  // There is no `$off`.
  client.$on('query', ({ query, duration }: QueryEvent) => {
    if (stopped) return;
    hearer.ended({ kind: 'sql', client: 'prisma', host: 'database', method: 'query', what: query }, duration);
  });
  return () => (stopped = true);
}
