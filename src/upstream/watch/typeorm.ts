import { PerfError } from '../../core/perf.error.js';
import { hasMethods, serverName, serverOf, type EndCall, type Hearer } from './watched-call.js';

/** https://typeorm.io/docs/advanced-topics/listeners-and-subscribers#beforequery */
interface QueryEvent {
  readonly queryRunner: { getReplicationMode(): string };
  readonly query: string;
  readonly parameters?: unknown;
  /** After it. */
  readonly success?: boolean;
}
interface DataSource {
  readonly isInitialized: boolean;
  readonly subscribers: object[];
  readonly options: Readonly<Record<string, unknown>>;
}
interface OpenQuery extends Pick<QueryEvent, 'query' | 'parameters'> {
  readonly end: EndCall;
}

/** @throws PERF_ERR_WATCH before `initialize()`, which makes the list of subscribers anew */
export function watchTypeOrm(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, 'initialize', 'createQueryRunner')) return null;
  const { isInitialized, subscribers, options } = client as unknown as DataSource;
  if (!isInitialized)
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a DataSource before it is ready. Call it after `await dataSource.initialize()`; one that Nest injects is ready.',
    );
  const { type } = options;
  const name = type === 'mariadb' ? 'mysql' : String(type);
  const [main, replica] = [hostOf(options), replicaOf(options)];
  const call = { kind: 'sql', client: name, method: 'query', driven: true } as const;
  const open = new WeakMap<object, OpenQuery[]>();
  const subscriber = {
    /** TypeORM waits for it: of every query, so that they keep their order. */
    async beforeQuery({ queryRunner, query, parameters }: QueryEvent): Promise<void> {
      const host = queryRunner.getReplicationMode() === 'slave' ? replica : main;
      const end = hearer.begin({ ...call, host, what: query });
      const queries = open.get(queryRunner) ?? [];
      open.set(queryRunner, queries);
      queries.push({ query, parameters, end });
    },
    afterQuery({ queryRunner, query, parameters, success }: QueryEvent): void {
      const queries = open.get(queryRunner) ?? [];
      const index = queries.findIndex((one) => one.query === query && one.parameters === parameters);
      if (index !== -1) queries.splice(index, 1)[0]!.end(success !== true);
    },
  };
  subscribers.push(subscriber);
  return () => {
    const index = subscribers.indexOf(subscriber);
    if (index !== -1) subscribers.splice(index, 1);
  };
}

/** Where reads go; of several replicas only the driver knows which. */
function replicaOf(options: DataSource['options']): string {
  const { slaves = [] } = (options['replication'] ?? {}) as { slaves?: readonly DataSource['options'][] };
  const hosts = new Set(slaves.map(hostOf));
  if (hosts.size > 1) return serverName('replicas', undefined, slaves[0]!['database']);
  return [...hosts][0] ?? hostOf(options);
}

function hostOf({ url, host, port, database, replication }: DataSource['options']): string {
  if (typeof url === 'string') return serverOf(url) ?? 'unknown';
  const main = (replication as { master?: Record<string, unknown> } | undefined)?.master;
  if (main !== undefined) return hostOf(main);
  // The database of an embedded one is a path.
  return host === undefined ? 'localhost' : serverName(host, port, database);
}
