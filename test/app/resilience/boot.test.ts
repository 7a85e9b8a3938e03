import { Inject, Injectable, Module, type ModuleMetadata, type Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, it } from 'vitest';
import {
  resilience,
  resilientRedis,
  Upstream,
  upstreamToken,
  type ResilientUpstream,
} from '../../../src/entries/resilience.js';
import { PerfModule, type PerfModuleOptions } from '../../../src/index.js';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

async function boot(metadata: ModuleMetadata, perf: PerfModuleOptions) {
  @Module({ ...metadata, imports: [PerfModule.forRoot(perf)] })
  class RootModule {}
  const app = await NestFactory.createApplicationContext(RootModule, { logger: false, abortOnError: false });
  opened.push(app);
  return app;
}
const github = () => resilience({ upstreams: { github: { deadlineMs: 1_000 }, 'search.v2': { deadlineMs: 1_000 } } });

@Injectable()
class Client {
  @Upstream('search.v2') readonly search!: ResilientUpstream;
  constructor(@Upstream('github') readonly github: ResilientUpstream) {}
}

const client = async (perf: PerfModuleOptions = {}) =>
  (await boot({ providers: [Client] }, { ...perf, extensions: [github()] })).get(Client);

@Injectable()
class Mistaken {
  constructor(@Upstream('gihub') readonly upstream: ResilientUpstream) {}
}

@Injectable()
class Injecting {
  constructor(@Inject(upstreamToken('gihub')) readonly upstream: ResilientUpstream) {}
}

describe('@Upstream', () => {
  it('injects into parameters and properties, into subclasses, and by its token into factories', async () => {
    @Injectable()
    class Special extends Client {}
    const made = {
      provide: 'made',
      inject: [upstreamToken('github')],
      useFactory: (upstream: ResilientUpstream) => ({ upstream }),
    };
    const app = await boot({ providers: [Client, Special, made] }, { extensions: [github()] });
    const client = app.get(Client);
    expect(await client.github.call(() => 1)).toBe(1);
    expect([client.search.state, client.search.stats().calls]).toEqual(['closed', 0]);
    expect(app.get(Special).github).toBe(client.github);
    expect(app.get<{ upstream: ResilientUpstream }>('made').upstream).toBe(client.github);
  });

  it('stops the boot for a name that is not there, with those that are', async () => {
    await expect(boot({ providers: [Mistaken] }, { extensions: [github()] })).rejects.toThrow(
      'PERF_ERR_DECORATOR: `@Upstream(\'gihub\')` in "Mistaken" names an upstream that `resilience({ upstreams })` does not have. ' +
        'It has: github, search.v2.',
    );
  });

  it.each<[string, Provider]>([
    ['a factory', { provide: 'asking', inject: [upstreamToken('gihub')], useFactory: () => ({}) }],
    ['`@Inject()`', Injecting],
  ])('stops the boot for such a name in %s, too', async (_what, provider) => {
    await expect(boot({ providers: [provider] }, { extensions: [github()] })).rejects.toThrow(
      "PERF_ERR_DECORATOR: `@Upstream('gihub')` in",
    );
  });

  it('stops the boot without its extension, with the line to add', async () => {
    await expect(boot({ providers: [Mistaken] }, {})).rejects.toThrow(
      'PERF_ERR_EXTENSION: `@Upstream(\'gihub\')` on "Mistaken" does nothing without its extension. ' +
        'Add it: PerfModule.forRoot({ extensions: [resilience({ upstreams: { gihub: { deadlineMs: 2_000 } } })] }).',
    );
  });

  it('has its limits also where it is called in `onModuleInit`, and passes calls before', async () => {
    const seen: string[] = [];
    @Injectable()
    class Early {
      constructor(@Inject(upstreamToken('github')) private readonly upstream: ResilientUpstream) {
        void upstream.call(() => void seen.push('constructor'));
      }
      onModuleInit = async (): Promise<void> => {
        await this.upstream.call(() => void seen.push('init'));
        seen.push(String(this.upstream.stats().calls));
      };
    }
    await (await boot({ providers: [Early] }, { extensions: [github()] })).init();
    expect(seen).toEqual(['constructor', 'init', '1']);
  });
});

describe('the options of resilience()', () => {
  const upstreams = (options: unknown) => () => resilience({ upstreams: { github: options as never } });
  it.each<[name: string, given: () => unknown, message: string]>([
    [
      'nothing',
      () => resilience(undefined as never),
      '`resilience.upstreams` must be an object with an entry for each upstream, got `undefined`.',
    ],
    [
      'no upstream',
      () => resilience({ upstreams: {} }),
      '`resilience.upstreams` must be an object with an entry for each upstream, got an object.',
    ],
    [
      'a name',
      () => resilience({ upstreams: { 'a b': { deadlineMs: 1 } } }),
      '`resilience.upstreams` must be named with letters, digits, `_`, `.` and `-`, got `"a b"` (string).',
    ],
    [
      'no deadline',
      upstreams({}),
      '`resilience.upstreams.github.deadlineMs` must be a number of milliseconds above 0 and at most 2147483647, got `undefined`.',
    ],
    ['no options', upstreams(undefined), '`resilience.upstreams.github` must be an object, got `undefined`.'],
    [
      'a deadline of 0',
      upstreams({ deadlineMs: 0 }),
      '`resilience.upstreams.github.deadlineMs` must be a number of milliseconds above 0 and at most 2147483647, got `0` (number).',
    ],
    [
      'an unknown key',
      upstreams({ deadlineMs: 1, retry: 1 }),
      '`resilience.upstreams.github.retry` is not an option. Known options: ',
    ],
    [
      'a ratio',
      upstreams({ deadlineMs: 1, breaker: { ratio: 50 } }),
      '`resilience.upstreams.github.breaker.ratio` must be a share of all calls above 0 and at most 1, got `50` (number).',
    ],
    [
      'a rule',
      upstreams({ deadlineMs: 1, isFailure: true }),
      '`resilience.upstreams.github.isFailure` must be a function, got `true` (boolean).',
    ],
    [
      'no client',
      () => resilientRedis({} as never, { deadlineMs: 1 }),
      '`resilientRedis(client)` must be a client of ioredis, a `Redis` or a `Cluster`, got an object.',
    ],
    [
      'a client of node-redis',
      () => resilientRedis({ sendCommand: () => {}, multi: () => {} } as never, { deadlineMs: 1 }),
      '`resilientRedis(client)` must be a client of ioredis, a `Redis` or a `Cluster`, got an object.',
    ],
    [
      'no deadline of Redis',
      () => resilientRedis({ sendCommand: () => {}, pipeline: () => {} }, {} as never),
      '`resilientRedis.deadlineMs` must be a number of milliseconds above 0 and at most 2147483647, got `undefined`.',
    ],
  ])('%s', (_name, given, message) => {
    expect(given).toThrow(`PERF_ERR_OPTION: ${message}`);
  });

  it.each([
    [
      { deadlineMs: -1 },
      '`call() options.deadlineMs` must be a number of milliseconds above 0 and at most 2147483647, got `-1` (number).',
    ],
    [{ fallback: 5 }, '`call() options.fallback` must be a function of the failure, got `5` (number).'],
    [{ idempotent: 'yes' }, '`call() options.idempotent` must be `true` or `false`, got `"yes"` (string).'],
    [{ fallBack: () => 1 }, '`call() options.fallBack` is not an option. Known options: '],
    [null, '`call() options` must be an object, got `null`.'],
  ])('of one call: %j', async (options, message) => {
    const { github } = await client();
    await expect(github.call(() => 1, options as never)).rejects.toThrow(`PERF_ERR_OPTION: ${message}`);
    expect(github.stats()).toMatchObject({ calls: 0, failed: 0 });
  });

  it.each([true, false])('where no work is given, as often as it is, with `enabled: %s`', async (enabled) => {
    const { github } = await client({ enabled });
    for (let call = 0; call < 25; call++) {
      await expect(github.call(undefined as never, { fallback: () => 1 })).rejects.toThrow(
        'PERF_ERR_OPTION: `call() work` must be a function that makes the call, got `undefined`.',
      );
    }
    expect([github.state, github.stats().failed, github.stats().fallbacks]).toEqual(['closed', 0, 0]);
  });
});
