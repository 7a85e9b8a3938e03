import { PerfError } from '../../core/perf.error.js';
import { databaseOf, type Database } from './database.js';
import { clientOf } from './knex.js';
import { OpenCalls, type WatchableClient } from './watched-client.js';

interface QueryEvent {
  readonly queryRunner: object;
  readonly query: string;
  readonly success?: boolean;
}
interface DataSource {
  readonly isInitialized: boolean;
  readonly subscribers: object[];
  readonly options: Database & { readonly type: string };
}

/** Subscribers hear of queries: https://typeorm.io/docs/advanced-topics/listeners-and-subscribers */
export const typeorm: WatchableClient = {
  name: 'TypeORM DataSource',
  recognizes: (client) => 'isInitialized' in client && 'subscribers' in client && 'createQueryRunner' in client,
  watch(dataSource: DataSource, watching) {
    if (!dataSource.isInitialized)
      throw new PerfError(
        'PERF_ERR_WATCH',
        'perf.watch() got a TypeORM DataSource that is not initialized yet, and its subscribers are replaced when it is. Call perf.watch() after `await dataSource.initialize()`.',
      );
    const calls = new OpenCalls<object>(watching);
    const { options, subscribers } = dataSource;
    const named = {
      kind: 'sql' as const,
      client: clientOf(options.type),
      host: databaseOf(options),
      method: 'query',
      path: '',
    };
    // A runner's queries may overlap; the end says the statement again.
    const running = new WeakMap<object, { statement: string }[]>();
    const subscriber = {
      beforeQuery({ queryRunner, query: statement }: QueryEvent): void {
        const key = { statement };
        running.set(queryRunner, [...(running.get(queryRunner) ?? []), key]);
        calls.begin(key, named, statement);
      },
      afterQuery({ queryRunner, query: statement, success }: QueryEvent): void {
        const keys = running.get(queryRunner) ?? [];
        const key = keys.find((one) => one.statement === statement);
        if (key === undefined) return;
        running.set(
          queryRunner,
          keys.filter((one) => one !== key),
        );
        calls.end(key, success === false);
      },
    };
    subscribers.push(subscriber);
    return () => {
      const at = subscribers.indexOf(subscriber);
      if (at !== -1) subscribers.splice(at, 1);
    };
  },
};
