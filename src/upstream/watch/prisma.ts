import type { WatchableClient } from './watched-client.js';

interface PrismaQuery {
  /** Milliseconds. */
  readonly duration: number;
}
interface PrismaClient {
  $on(event: 'query', hear: (query: PrismaQuery) => void): unknown;
}

/** Tells when a query is over: https://www.prisma.io/docs/orm/prisma-client/observability-and-logging/logging */
export const prisma: WatchableClient = {
  name: 'PrismaClient',
  recognizes: (client) => '$on' in client && '$connect' in client,
  watch(client: PrismaClient, watching) {
    const target = watching.targetOf({ kind: 'sql', client: 'prisma', host: 'database', method: 'query', path: '' });
    client.$on('query', ({ duration }) => {
      if (watching.active) watching.upstream.over(target, duration);
    });
    // Prisma has no way to stop listening.
    return () => {};
  },
};
