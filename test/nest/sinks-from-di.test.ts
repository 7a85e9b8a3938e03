import { Controller, Get, Inject, Injectable, Module, Scope, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { loggerSink, PerfModule, type PerfModuleOptions, type PerfRecord, type PerfSink } from '../../src/index.js';
import { memorySink, overridePerfSinks, settle } from '../../src/entries/testing.js';
import { type Adapter, adapterOf, acrossNests } from '../fixtures/app.js';

const TABLE = Symbol('TABLE');
const SINK = 'AUDIT_SINK';

@Injectable()
class DatabaseSink implements PerfSink {
  readonly name = 'database';
  readonly records: PerfRecord[] = [];
  constructor(@Inject(TABLE) readonly table: string) {}
  publish(records: readonly PerfRecord[]): void {
    this.records.push(...records);
  }
}
@Injectable({ scope: Scope.REQUEST })
class ScopedSink extends DatabaseSink {}

const token = memorySink();
/** Not global, and not exported: it belongs to this module, and may be a sink all the same. */
@Module({
  providers: [
    { provide: TABLE, useValue: 'requests' },
    DatabaseSink,
    ScopedSink,
    { provide: SINK, useFactory: async () => token },
    { provide: 'NO_SINK', useValue: { name: 'nothing' } },
  ],
})
class StorageModule {}

@Controller()
class ItemsController {
  @Get('items')
  items() {
    return [];
  }
}

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  token.records.length = 0;
  for (const app of open.splice(0)) await app.close();
});

async function boot(adapter: Adapter, imports: NonNullable<ModuleMetadata['imports']>) {
  @Module({ imports, controllers: [ItemsController] })
  class AppModule {}
  const app = await NestFactory.create(AppModule, adapterOf(adapter), { logger: false, abortOnError: false });
  open.push(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl(), AppModule };
}
const routesOf = (records: readonly PerfRecord[]): string[] =>
  records.filter((record) => record.kind === 'request').map(({ route }) => route);

describe.each(acrossNests('express'))('sinks from the application’s providers on %s', (adapter) => {
  const sinks = (): PerfModuleOptions => ({ sinks: [DatabaseSink, SINK] });

  it.each([
    ['forRoot', () => PerfModule.forRoot(sinks())],
    ['forRootAsync', () => PerfModule.forRootAsync({ useFactory: async () => sinks() })],
    ['forRoot, not global', () => PerfModule.forRoot({ ...sinks(), isGlobal: false })],
  ])('are found by class and by token, whichever module has them: %s', async (_form, perf) => {
    const { app, url } = await boot(adapter, [perf(), StorageModule]);
    await fetch(`${url}/items`);
    await settle(app);
    const database = app.get(DatabaseSink, { strict: false });
    expect(database.table).toBe('requests');
    expect([routesOf(database.records), routesOf(token.records)]).toEqual([['/items'], ['/items']]);
  });

  it.each<[string, PerfModuleOptions['sinks'], string]>([
    ['a class without a provider', [memorySink(), class LostSink extends DatabaseSink {}], '`sinks[1]` is `LostSink`'],
    ['a token without a provider', ['LOST'], '`sinks[0]` is `LOST`'],
    ['a request-scoped provider', [ScopedSink], '`sinks[0]` is `ScopedSink`'],
    ['a function that makes a sink, not called', [loggerSink], '`sinks[0]` is `loggerSink`'],
  ])('stop the boot and say what to do: %s', async (_what, given, where) => {
    await expect(boot(adapter, [PerfModule.forRoot({ sinks: given! }), StorageModule])).rejects.toMatchObject({
      code: 'PERF_ERR_OPTION',
      message:
        `PERF_ERR_OPTION: ${where}, but no module of this application provides it once for all requests. ` +
        'Add it to the `providers` of a module, without a request scope; a function that makes a sink must be called.',
    });
  });

  it('stop the boot when what is provided is no sink', async () => {
    await expect(boot(adapter, [PerfModule.forRoot({ sinks: ['NO_SINK'] }), StorageModule])).rejects.toThrow(
      'PERF_ERR_OPTION: `sinks[0]` must be a sink (an object with a `name` and a `publish()` method), or the class or injection ' +
        'token of one, got an object. It is what `NO_SINK` provides.',
    );
  });
});

describe.each(acrossNests('fastify'))('overridePerfSinks on %s', (adapter) => {
  @Module({
    imports: [PerfModule.forRootAsync({ useFactory: () => ({ sinks: [DatabaseSink] }) }), StorageModule],
    controllers: [ItemsController],
  })
  class AppModule {}

  it('puts a test’s sinks in the place of those of the imported application', async () => {
    const memory = memorySink();
    const builder = overridePerfSinks(Test.createTestingModule({ imports: [AppModule] }), [memory]);
    const module = await builder.compile();
    const app = module.createNestApplication(adapterOf(adapter), { logger: false });
    open.push(app);
    await app.listen(0, '127.0.0.1');
    await fetch(`${await app.getUrl()}/items`);
    await settle(app);
    expect(routesOf(memory.records)).toEqual(['/items']);
    expect(app.get(DatabaseSink, { strict: false }).records).toEqual([]);
  });

  it('refuses what is no sink', () => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    expect(() => overridePerfSinks(builder, [{ name: 'x' } as never])).toThrow('PERF_ERR_OPTION: `sinks[0]` must be a');
  });
});
