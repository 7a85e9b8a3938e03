import { Inject, Injectable, Module, type DynamicModule, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { PerfModule, PerfService, type PerfModuleOptions } from '../../src/index.js';
import { memorySink } from '../../src/entries/testing.js';
import { FEATURE_OPTIONS } from '../../src/request/feature.js';
import type { ProvidedOptions } from '../../src/perf.options.js';
import { adapterOf, type Adapter, acrossNests } from '../fixtures/app.js';

const SLOW_MS = Symbol('SLOW_MS');

@Module({ providers: [{ provide: SLOW_MS, useValue: 250 }], exports: [SLOW_MS] })
class SettingsModule {}

/** Which sink got started tells which options arrived. */
function optionsOf(started: string[], name: string): PerfModuleOptions {
  return { sinks: [{ ...memorySink(), name, start: () => void started.push(name) }] };
}

let started: string[] = [];

@Injectable()
class OptionsClass {
  constructor(@Inject(SLOW_MS) private readonly slowMs: number) {}

  create(): PerfModuleOptions {
    return { ...optionsOf(started, 'class'), latency: { slowMs: this.slowMs } };
  }
}

@Module({ imports: [SettingsModule], providers: [OptionsClass], exports: [OptionsClass] })
class OptionsModule {}

@Injectable()
class Elsewhere {
  constructor(@Inject(PerfService) readonly perf: PerfService) {}
}
@Module({ providers: [Elsewhere] })
class ElsewhereModule {}

async function boot(name: Adapter, metadata: ModuleMetadata) {
  @Module(metadata)
  class RootModule {}
  const app = await NestFactory.create(RootModule, adapterOf(name), { logger: false, abortOnError: false });
  return app.init();
}

describe.each(acrossNests('express'))('registered with %s', (adapter) => {
  const forms: [form: string, module: () => DynamicModule, expected: string][] = [
    ['forRoot(options)', () => PerfModule.forRoot({ ...optionsOf(started, 'root'), latency: { slowMs: 5 } }), 'root 5'],
    [
      'forRoot() with latency off',
      () => PerfModule.forRoot({ ...optionsOf(started, 'off'), latency: false }),
      'off undefined',
    ],
    ['useFactory', () => PerfModule.forRootAsync({ useFactory: () => optionsOf(started, 'factory') }), 'factory 1000'],
    [
      'useFactory with imports and inject',
      () =>
        PerfModule.forRootAsync({
          imports: [SettingsModule],
          inject: [SLOW_MS],
          useFactory: async (slowMs: number) => {
            await Promise.resolve();
            return { ...optionsOf(started, 'injected'), latency: { slowMs } };
          },
        }),
      'injected 250',
    ],
    ['useClass', () => PerfModule.forRootAsync({ imports: [SettingsModule], useClass: OptionsClass }), 'class 250'],
    [
      'useExisting',
      () => PerfModule.forRootAsync({ imports: [OptionsModule], useExisting: OptionsClass }),
      'class 250',
    ],
  ];
  it.each(forms)('takes its options from %s', async (_form, module, expected) => {
    started = [];
    const app = await boot(adapter, { imports: [module(), ElsewhereModule] });
    const fromElsewhere = app.get(Elsewhere, { strict: false }).perf;
    expect(fromElsewhere).toBe(app.get(PerfService));
    const { latency } = app.get<ProvidedOptions>(FEATURE_OPTIONS).resolved;
    await app.close();
    expect(`${started.join()} ${latency?.slowMs}`).toBe(expected);
  });

  it('needs no options at all', async () => {
    const app = await boot(adapter, { imports: [PerfModule.forRoot()] });
    expect(app.get(PerfService).snapshot().routes).toEqual([]);
    await app.close();
  });

  it.each([
    ['forRoot', () => PerfModule.forRoot({ latency: { slowMs: -5 } })],
    ['forRootAsync', () => PerfModule.forRootAsync({ useFactory: () => ({ latency: { slowMs: -5 } }) })],
  ])('stops the boot over a wrong option given to %s', async (_form, module) => {
    await expect(boot(adapter, { imports: [module()] })).rejects.toMatchObject({
      name: 'PerfError',
      code: 'PERF_ERR_OPTION',
      message:
        'PERF_ERR_OPTION: `latency.slowMs` must be a number of milliseconds above 0, got `-5` (number).\n' +
        'To switch the feature off, set `latency: false`.',
    });
  });

  it.each([
    [null, '`null`'],
    [[], 'an array of 0'],
    [7, '`7` (number)'],
    ['all', '`"all"` (string)'],
    [() => ({}), 'a function'],
  ])('refuses %s in place of the options', async (options, shown) => {
    const message = `PERF_ERR_OPTION: The options must be an object, got ${shown}.`;
    expect(() => PerfModule.forRoot(options as never)).toThrow(message);
    const fromFactory = PerfModule.forRootAsync({ useFactory: () => options as never });
    await expect(boot(adapter, { imports: [fromFactory] })).rejects.toThrow(message);
  });

  it.each([
    [undefined, 'The options must be an object, got `undefined`.'],
    [{}, '`forRootAsync()` must be an object with one of `useFactory` (a function), `useClass` and `useExisting`'],
    [{ useFactory: {} }, '`forRootAsync()` must be an object with one of `useFactory` (a function)'],
    [{ useFactory: () => ({}), useClass: OptionsClass }, '`forRootAsync()` must be an object with one of'],
    [
      { useFactory: () => ({}), dashboard: true },
      '`forRootAsync()` has no option `dashboard`: an option of the module stands in what `useFactory` returns.',
    ],
  ])('refuses %s of forRootAsync', (options, message) => {
    expect(() => PerfModule.forRootAsync(options as never)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });

  it('refuses an `isGlobal` that is neither true nor false', () => {
    const message = 'PERF_ERR_OPTION: `isGlobal` must be `true` or `false`, got `"no"` (string).';
    expect(() => PerfModule.forRoot({ isGlobal: 'no' as never })).toThrow(message);
    expect(() => PerfModule.forRootAsync({ isGlobal: 'no' as never, useFactory: () => ({}) })).toThrow(message);
  });

  @Module({ imports: [PerfModule.forRoot()] })
  class FeatureModule {}
  it.each([
    ['twice in the root', [PerfModule.forRoot(), PerfModule.forRoot({ latency: { slowMs: 5 } })]],
    [
      'once as forRoot and once as forRootAsync',
      [PerfModule.forRoot(), PerfModule.forRootAsync({ useFactory: () => ({}) })],
    ],
    ['again in a feature module', [PerfModule.forRoot({}), FeatureModule]],
    [
      'with `isGlobal: false` twice',
      [PerfModule.forRoot({ isGlobal: false }), PerfModule.forRoot({ isGlobal: false, latency: { slowMs: 5 } })],
    ],
  ])('stops the boot when it is imported %s', async (_form, imports) => {
    await expect(boot(adapter, { imports })).rejects.toMatchObject({
      name: 'PerfError',
      code: 'PERF_ERR_REGISTERED_TWICE',
      message: expect.stringMatching(
        /^PERF_ERR_REGISTERED_TWICE: `PerfModule\.forRoot\(\)` is imported 2 times in this application\. Call it once, /,
      ),
    });
  });

  it.each([
    ['the bare class', PerfModule],
    ['a factory that returns nothing', PerfModule.forRootAsync({ useFactory: () => undefined as never })],
  ])('stops the boot over %s and shows how to import it', async (_form, perf) => {
    await expect(boot(adapter, { imports: [perf] })).rejects.toMatchObject({
      name: 'PerfError',
      code: 'PERF_ERR_OPTION',
      message:
        'PERF_ERR_OPTION: PerfModule has no options: it was imported without `forRoot()`, or its `useFactory` returned nothing. ' +
        'Import `PerfModule.forRoot()` once, in the root module.',
    });
  });

  it('may be in two modules that import one and the same registration', async () => {
    const perf = PerfModule.forRoot();
    @Module({ imports: [perf] })
    class SharingModule {}
    const app = await boot(adapter, { imports: [perf, SharingModule] });
    await app.close();
  });

  it('stays out of other modules with `isGlobal: false`', async () => {
    const booting = boot(adapter, { imports: [PerfModule.forRoot({ isGlobal: false }), ElsewhereModule] });
    await expect(booting).rejects.toThrow(/can't resolve dependencies of the Elsewhere/);
  });

  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => PerfModule.forRoot({ isGlobal: false })],
    ['useFactory', () => PerfModule.forRootAsync({ isGlobal: false, useFactory: () => ({}) })],
    ['useClass', () => PerfModule.forRootAsync({ isGlobal: false, imports: [SettingsModule], useClass: OptionsClass })],
    [
      'useExisting',
      () => PerfModule.forRootAsync({ isGlobal: false, imports: [OptionsModule], useExisting: OptionsClass }),
    ],
  ])(
    'with `isGlobal: false` in %s serves the modules that import `PerfModule`, and one service to all',
    async (_form, perf) => {
      @Module({ imports: [PerfModule], providers: [Elsewhere] })
      class ImportingModule {}
      const app = await boot(adapter, { imports: [perf(), ImportingModule] });
      const fromElsewhere = app.get(Elsewhere, { strict: false }).perf;
      expect(fromElsewhere).toBe(app.get(PerfService));
      await app.close();
      await expect(boot(adapter, { imports: [perf(), ImportingModule, ElsewhereModule] })).rejects.toThrow(
        /can't resolve dependencies of the Elsewhere/,
      );
    },
  );

  it('works the same under @nestjs/testing', async () => {
    started = [];
    const module = await Test.createTestingModule({
      imports: [PerfModule.forRoot(optionsOf(started, 'test'))],
    }).compile();
    const app = module.createNestApplication(adapterOf(adapter), { logger: false });
    await app.init();
    expect(started).toEqual(['test']);
    await app.close();
  });
});
