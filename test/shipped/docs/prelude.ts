/** Values that a block may leave its import of out, by package. What is a class there is a type too. */
const VALUES: Readonly<Record<string, { functions: string[]; classes: string[] }>> = {
  '@nestjs/common': {
    functions: [
      'Body',
      'Catch',
      'Controller',
      'Get',
      'Inject',
      'Injectable',
      'Module',
      'Param',
      'Post',
      'Query',
      'Req',
      'UseInterceptors',
    ],
    classes: ['ServiceUnavailableException'],
  },
  '@nestjs/core': { functions: [], classes: ['NestFactory'] },
  'nestjs-perf': {
    functions: [
      'defer',
      'DeferWork',
      'DurableWork',
      'Experiment',
      'fileHistory',
      'loggerSink',
      'NoCompression',
      'SharedResponse',
      'SkipPerf',
      'staticGates',
      'Variant',
    ],
    classes: [
      'Deferrer',
      'Experiments',
      'PerfError',
      'PerfInterceptor',
      'PerfModule',
      'PerfService',
      'ResourceSampler',
    ],
  },
  'nestjs-perf/offload': { functions: ['Offload', 'offload'], classes: ['Offloader'] },
  'nestjs-perf/bullmq': { functions: ['bullmqStore'], classes: [] },
  'nestjs-perf/resilience': { functions: ['resilience', 'resilientRedis', 'Upstream'], classes: [] },
  'nestjs-perf/prometheus': { functions: ['prometheusSink'], classes: [] },
  'nestjs-perf/opentelemetry': { functions: ['openTelemetrySink'], classes: [] },
  'nestjs-perf/statsig': { functions: ['statsigSink', 'statsigGates'], classes: [] },
  'nestjs-perf/openfeature': { functions: ['openFeatureGates'], classes: [] },
  'nestjs-perf/cache': { functions: ['cache', 'Cached', 'Preloaded'], classes: ['PerfCache'] },
  'nestjs-perf/redis': { functions: ['redisCache', 'redisHistory'], classes: [] },
  'nestjs-perf/record': { functions: ['record'], classes: [] },
  'nestjs-perf/testing': { functions: ['memorySink', 'settle'], classes: [] },
};
const TYPES = [
  'BatchItem<T>',
  'DeferContext<T = any>',
  'DeferInfo',
  'DeferredBatchWork<T = any>',
  'DeferredWork<T = any>',
].concat(['PerfRecord', 'PerfRequest', 'PerfSink', 'PerfSinkHost', 'RequestRecord', 'BlockRecord']);

/** The application that the guides speak of. Each name is used as any reader would guess. */
const APPLICATION = `
  interface Order { id: string; total: number; email: string }
  interface AuditRow { user: string; order: string }
  interface OutboxRow { id: string; data: { orderId: string } }
  class Mailer { receipt(orderId: string, key?: string): Promise<void> }
  class Orders { create(body: unknown): Promise<Order>; find(id: string): Promise<Order>; all(): Promise<Order[]> }
  class Database {
    query(sql: string, values?: unknown[]): Promise<{ rows: any[] }>;
    transaction<T>(work: (transaction: Database) => Promise<T>): Promise<T>;
    insert(rows: unknown[]): Promise<void>;
  }
  class SendReceipt implements DeferredWork<{ orderId: string }> { run(data: { orderId: string }, info: DeferInfo): Promise<void> }
  class OrdersModule {}
  class AppModule {}
  const database: Database;
  const orders: Orders;
  const id: string;
  const orderId: string;
  const app: import('@nestjs/common').INestApplication;
  const deferrer: import('nestjs-perf').Deferrer;
  const perf: import('nestjs-perf').PerfService;
  const experiments: import('nestjs-perf').Experiments;
  const connection: { host: string; port: number };
`;

/** Packages that a guide shows and this repository does not install: as far as the guides use them. */
export const STAND_INS = `
declare module '@opentelemetry/exporter-metrics-otlp-http' {
  export const AggregationTemporalityPreference: { readonly DELTA: 0; readonly CUMULATIVE: 1; readonly LOWMEMORY: 2 };
  export class OTLPMetricExporter implements import('@opentelemetry/sdk-metrics').PushMetricExporter {
    constructor(options?: { url?: string; headers?: Record<string, string>; temporalityPreference?: number });
    export(...parameters: Parameters<import('@opentelemetry/sdk-metrics').PushMetricExporter['export']>): void;
    forceFlush(): Promise<void>;
    shutdown(): Promise<void>;
  }
}
declare module 'pg' {
  export class Pool {
    constructor(options: { host?: string; database?: string; max?: number; connectionString?: string });
  }
}
declare module 'mysql2/promise' {
  export function createPool(options: { host?: string; database?: string; connectionLimit?: number }): object;
}
declare module 'mongodb' {
  export class MongoClient {
    constructor(url: string, options?: { monitorCommands?: boolean });
  }
}
declare module 'knex' {
  export default function knex(options: { client: string; connection: { host: string; port: number; database: string } }): object;
}
declare module 'typeorm' {
  export class DataSource {}
}
declare module '@prisma/adapter-pg' {
  export class PrismaPg {
    readonly provider: 'postgres';
    constructor(poolOrOptions: import('pg').Pool | { connectionString: string });
  }
}
declare module '@prisma/client' {
  type Operation = { args: unknown; query: (args: unknown) => Promise<unknown> };
  export class PrismaClient {
    constructor(options: { adapter: import('@prisma/adapter-pg').PrismaPg; log?: { emit: 'event'; level: 'query' }[] });
    $extends(extension: { query: { $allOperations: (operation: Operation) => Promise<unknown> } }): this;
  }
}
`;

/** A declaration file with all of it as globals. What a block declares or imports itself stands before them. */
export function globalsOf(): string {
  const values = Object.entries(VALUES).flatMap(([name, { functions, classes }]) => [
    ...[...functions, ...classes].map((value) => `  const ${value}: typeof import('${name}').${value};`),
    ...classes.map((type) => `  type ${type} = import('${name}').${type};`),
  ]);
  const types = TYPES.map((type) => {
    const [, name, parameters = ''] = /^(\w+)(<.*>)?$/.exec(type)!;
    const given = parameters.replace(/ = \w+/, '');
    return `  type ${name}${parameters} = import('nestjs-perf').${name}${given};`;
  });
  return `declare global {\n${[...values, ...types].join('\n')}\n${APPLICATION}}\nexport {};\n`;
}

/** Runs the blocks one after the other; `BLOCKS` are their files. Says `ok` or why not, a line each. */
export const RUN_PRELUDE = `
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ExpressAdapter } from '@nestjs/platform-express';
${Object.keys(VALUES)
  .map((name, i) => `import * as names${i} from '${name}';`)
  .join('\n')}
${Object.values(VALUES)
  .map(
    ({ functions, classes }, i) =>
      `for (const name of ${JSON.stringify([...functions, ...classes])}) globalThis[name] = names${i}[name];`,
  )
  .join('\n')}

// What APPLICATION declares. Its one application has every extension that a block asks for.
class Mailer { async receipt() {} }
class Orders { async create(body) { return { id: '7', total: 12, email: 'ada@example.org', ...body }; } async find(id) { return { id }; } async all() { return []; } }
class Database { async query() { return { rows: [] }; } async transaction(work) { return work(this); } async insert() {} }
class SendReceipt { async run() {} }
class OrdersModule {}
class AppModule {}
const directory = mkdtempSync(join(tmpdir(), 'docs-'));
const extensions = [resilience({ upstreams: { github: { deadlineMs: 1_000 } } }), record({ directory })];
const experimentOptions = { gates: staticGates({ lean_json: false }), switchback: { gate: 'lean_json' } };
Module({})(OrdersModule);
Module({ imports: [PerfModule.forRoot({ sinks: [], extensions, experiments: experimentOptions })], providers: [SendReceipt] })(AppModule);
const app = await NestFactory.create(AppModule, new ExpressAdapter(), { logger: false, abortOnError: false });
await app.listen(0, '127.0.0.1');
Object.assign(globalThis, { Mailer, Orders, Database, SendReceipt, OrdersModule, AppModule, app, id: '7', orderId: '7' });
Object.assign(globalThis, { database: new Database(), orders: new Orders(), connection: { host: '127.0.0.1', port: 1 } });
Object.assign(globalThis, { perf: app.get(PerfService), deferrer: app.get(Deferrer), experiments: app.get(Experiments) });

/** In the short run each module has one adapter, by turns. */
const ADAPTERS = [FastifyAdapter, ExpressAdapter];
let booted = 0;
for (const file of BLOCKS) {
  try {
    const { AppModule } = await import('./' + file);
    if (AppModule !== undefined) {
      const chosen = process.env.PERF_LONG === undefined ? [ADAPTERS[booted++ % 2]] : ADAPTERS;
      for (const Adapter of chosen) await boot(AppModule, new Adapter());
    }
    console.log(file + ' ok');
  } catch (error) {
    console.log(file + ' ' + String(error).replaceAll('\\n', ' '));
  }
}
await app.close();
rmSync(directory, { recursive: true });

async function boot(AppModule, adapter) {
  const app = await NestFactory.create(AppModule, adapter, { logger: ['error', 'fatal'], abortOnError: false });
  await app.listen(0, '127.0.0.1');
  try {
    const statuses = [];
    for (const path of ['/nowhere', ...getsOf(AppModule)]) {
      const response = await fetch(await app.getUrl() + path);
      await response.arrayBuffer();
      statuses.push(path + ' ' + response.status);
    }
    assert.equal(statuses.shift(), '/nowhere 404');
    assert.deepEqual(statuses.filter((status) => !/ (200|503)$/.test(status)), []); // 503: not ready on a busy machine
  } finally {
    await app.close();
  }
}

/** The paths of a module's own GET routes without parameters. */
function getsOf(AppModule) {
  return (Reflect.getMetadata('controllers', AppModule) ?? []).flatMap((Controller) =>
    Object.values(Object.getOwnPropertyDescriptors(Controller.prototype))
      .filter(({ value }) => typeof value === 'function' && Reflect.getMetadata('method', value) === 0)
      .map(({ value }) => join('/', Reflect.getMetadata('path', Controller), Reflect.getMetadata('path', value)).replace(/(.)[/]$/, '$1'))
      .filter((path) => !path.includes(':')),
  );
}
`;
