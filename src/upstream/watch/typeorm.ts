import { PerfError } from '../../core/perf.error.js';
import { hasMethods } from './watch.js';

interface DataSource {
  readonly isInitialized: boolean;
  /** Typed in TypeORM's drivers: of Postgres and CockroachDB the first two, of MySQL the third. */
  readonly driver: { readonly master?: object; readonly slaves?: readonly object[]; readonly pool?: object };
}

/**
 * Finds the pools of a TypeORM `DataSource`; null for another client.
 * @throws PERF_ERR_WATCH before `initialize()`, and with a driver without a pool
 */
export function driverPools(client: object): readonly object[] | null {
  if (!hasMethods(client, 'initialize', 'createQueryRunner')) return null;
  const { isInitialized, driver } = client as unknown as DataSource;
  if (!isInitialized)
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a DataSource before it is ready. Call it after `await dataSource.initialize()`; one that Nest injects is ready.',
    );
  const pools = [driver.master ?? [], driver.slaves ?? [], driver.pool ?? []].flat();
  if (pools.length > 0) return pools;
  throw new PerfError(
    'PERF_ERR_WATCH',
    'perf.watch() was given a DataSource whose driver has no pool that it knows: it watches those of Postgres, CockroachDB, MySQL and MariaDB ' +
      'without replication. Put `perf.timed()` around calls of others.',
  );
}
