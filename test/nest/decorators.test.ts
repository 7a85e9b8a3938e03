import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  Injectable,
  type NestInterceptor,
  Param,
  Post,
  Scope,
  SetMetadata,
  Sse,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { lastValueFrom, Observable, of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { settle } from '../../src/entries/testing.js';
import {
  defer,
  type DeferContext,
  type DeferredWork,
  DeferWork,
  Experiment,
  NoCompression,
  type PerfSink,
  type RequestRecord,
  SharedResponse,
  SkipPerf,
  SlowMs,
  staticGates,
} from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';

type Method = (this: unknown, ...parameters: unknown[]) => unknown;
type Ours = MethodDecorator;

const LONG = process.env['PERF_LONG'] !== undefined;
const TEN_KB = 'compressible '.repeat(800);
let steps: string[] = [];
const step =
  (name: string) =>
  ({ result }: DeferContext): void =>
    void steps.push(`${name} ${JSON.stringify(result)?.slice(0, 20)}`);

afterEach(async () => {
  await closeApps();
  steps = [];
});

/** As @Transactional() and @Span() do: a function around the method, with its name and its metadata. */
const Transactional = (): MethodDecorator => (_target, _key, descriptor) => {
  const method = descriptor.value as Method;
  const wrapper = async function (this: unknown, ...parameters: unknown[]): Promise<unknown> {
    steps.push('begin');
    try {
      const value = await method.apply(this, parameters);
      return value instanceof Observable ? await lastValueFrom(value as Observable<unknown>) : value;
    } finally {
      steps.push('end');
    }
  };
  Object.defineProperty(wrapper, 'name', { value: method.name });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
  }
  descriptor.value = wrapper as never;
};
/** One that carries nothing over, as older ones do. */
const Timed = (): MethodDecorator => (_target, _key, descriptor) => {
  const method = descriptor.value as Method;
  descriptor.value = async function timed(this: unknown, ...parameters: unknown[]): Promise<unknown> {
    return method.apply(this, parameters);
  } as never;
};
/** Keeps something on the method itself. */
const Audited = (): MethodDecorator => (_target, _key, descriptor) => {
  Object.assign(descriptor.value as object, { audited: true });
};

@Injectable()
class OpenGuard implements CanActivate {
  static handlers: Method[] = [];
  canActivate(context: ExecutionContext) {
    OpenGuard.handlers.push(context.getHandler() as Method);
    return true;
  }
}

/** Each of our method decorators, and what shows that it has taken effect on the answer of a request. */
interface Case {
  readonly name: string;
  readonly decorator: () => Ours;
  readonly isEffective: (seen: {
    encoding: string | undefined;
    record: RequestRecord | undefined;
    calls: number;
  }) => boolean;
}
const cases: Case[] = [
  {
    name: '@DeferWork',
    decorator: () => DeferWork(step('work')),
    isEffective: () => steps.some((one) => one.startsWith('work')),
  },
  {
    name: '@Experiment',
    decorator: () => Experiment('gate'),
    isEffective: ({ record }) => record?.variants?.['gate'] === 'on',
  },
  { name: '@NoCompression', decorator: () => NoCompression(), isEffective: ({ encoding }) => encoding === undefined },
  {
    name: '@SharedResponse',
    decorator: () => SharedResponse({ ttlMs: 60_000 }),
    isEffective: ({ calls }) => calls === 1,
  },
  { name: '@SkipPerf', decorator: () => SkipPerf(), isEffective: ({ record }) => record === undefined },
  { name: '@SlowMs', decorator: () => SlowMs(0.000_1), isEffective: () => steps.includes('slow') },
];

/** Nest's own and foreign decorators that ours stand above or below. */
const others: [name: string, decorators: () => MethodDecorator[]][] = [
  ['@Get()', () => []],
  ['@UseGuards()', () => [UseGuards(OpenGuard)]],
  ['@HttpCode()', () => [HttpCode(200), Header('x-own', 'yes')]],
  ['SetMetadata()', () => [SetMetadata('own', 'metadata')]],
  ['@Transactional()', () => [Transactional()]],
  [
    'all of them',
    () => [UseGuards(OpenGuard), HttpCode(200), SetMetadata('own', 'metadata'), Transactional(), Audited()],
  ],
];

const apply = (decorators: readonly MethodDecorator[], type: Type, name: string): void => {
  const prototype = type.prototype as object;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name)!;
  // As TypeScript does: from the last to the first.
  for (const decorator of decorators.toReversed()) decorator(prototype, name, descriptor);
  Object.defineProperty(prototype, name, descriptor);
};

let calls = 0;
const handle = async (id: string): Promise<object> => {
  calls += 1;
  await Promise.resolve();
  return { id, text: TEN_KB };
};

function buildController(scope: Scope, nth: number): Type<{ get: Method }> {
  @Controller({ path: `cases-${nth}`, scope })
  class CasesController {
    async get(@Param('id') id: string, _unused?: string) {
      return handle(id);
    }
  }
  return CasesController as unknown as Type<{ get: Method }>;
}

/** Name, length, properties, metadata and types of the method are those without ours, and the guards at least those. */
function expectCarriedOver(
  plain: Type<{ get: Method }>,
  decorated: Type<{ get: Method }>,
  site: string,
  adds: boolean,
) {
  const [before, after] = [plain.prototype.get, decorated.prototype.get];
  const own = (method: Method) => Reflect.ownKeys(method).map(String).toSorted();
  expect([site, after.name, after.length, own(after)]).toEqual([site, before.name, before.length, own(before)]);
  for (const key of own(before)) expect(Reflect.get(after, key), `${site}: ${key}`).toEqual(Reflect.get(before, key));
  for (const key of Reflect.getOwnMetadataKeys(before) as unknown[]) {
    const [kept, given] = [Reflect.getOwnMetadata(key, after), Reflect.getOwnMetadata(key, before)] as unknown[];
    if (adds && key === '__guards__') expect(kept, site).toEqual(expect.arrayContaining(given as unknown[]));
    else expect([site, key, kept]).toEqual([site, key, given]);
  }
  const types = (type: Type) => Reflect.getMetadata('design:paramtypes', type.prototype as object, 'get') as unknown;
  expect(types(decorated), site).toEqual(types(plain));
}

const slow: PerfSink = {
  name: 'slow',
  publish(records) {
    for (const record of records) if (record.kind === 'request' && record.slow === true) steps.push('slow');
  },
};

describe.each(adapters)('on %s', (adapter) => {
  const listening = (controllers: Type[], providers: Type[] = []) =>
    listeningApp(adapterOf(adapter), {
      metadata: { controllers, providers: [OpenGuard, ...providers] },
      perf: { experiments: { gates: staticGates({ gate: true }) }, sinks: [slow] },
    });
  const ranIn = async (
    built: Awaited<ReturnType<typeof listening>>,
    path: string,
    init?: RequestInit,
  ): Promise<string[]> => {
    steps = [];
    const response = await fetch(built.url + path, init);
    expect([path, response.status < 300]).toEqual([path, true]);
    await response.text();
    await settle(built.app);
    return steps;
  };

  describe.each(cases)('$name', ({ name, decorator, isEffective }) => {
    const sites = (['above', 'below'] as const).flatMap((where) =>
      others.map(([around, make]) => ({ where, around, make, scope: Scope.DEFAULT })),
    );
    // Every site on one adapter, and the long form has both.
    const half = sites.filter((_, i) => LONG || i % 2 === adapters.indexOf(adapter));
    const [around, make] = others.at(-1)!;
    for (const where of ['above', 'below'] as const)
      half.push({ where, around: `${around}, request-scoped`, make, scope: Scope.REQUEST });

    it(`above and below ${others.length} others it carries everything over, and takes effect`, async () => {
      const decorated: ReturnType<typeof buildController>[] = [];
      for (const [i, { where, around: site, make: makeOthers, scope }] of half.entries()) {
        const plain = buildController(scope, i);
        const own = buildController(scope, i);
        const [ours, theirs] = [decorator(), [Get(':id'), ...makeOthers()]];
        apply(theirs, plain, 'get');
        apply(where === 'above' ? [ours, ...theirs] : [...theirs, ours], own, 'get');
        expectCarriedOver(plain, own, `${where} ${site}`, ['@NoCompression', '@SharedResponse'].includes(name));
        decorated.push(own);
      }
      const built = await listening(decorated);
      for (const [i, { where, around: site }] of half.entries()) {
        OpenGuard.handlers = [];
        [calls, steps] = [0, []];
        const answers = [];
        for (let times = 0; times < 2; times++) answers.push(await callAccepting(`${built.url}/cases-${i}/7`, 'gzip'));
        await settle(built.app);
        for (const { status, text } of answers)
          expect([site, status, JSON.parse(text)]).toEqual([site, 200, { id: '7', text: TEN_KB }]);
        const record = built.sink.records.find(
          (one): one is RequestRecord => one.kind === 'request' && one.route === `/cases-${i}/:id`,
        );
        const seen = { encoding: answers[0]!.headers['content-encoding'], record, calls };
        expect(isEffective(seen), JSON.stringify({ where, site, ...seen, steps })).toBe(true);
        expect(OpenGuard.handlers.every((handler) => handler === decorated[i]!.prototype.get)).toBe(true);
        if (record !== undefined) expect(record.handler).toBe('CasesController.get');
      }
    });
  });

  describe('@DeferWork', () => {
    class ByClass implements DeferredWork {
      run(): void {
        steps.push('by class');
      }
    }

    it('stacked, on the class too: once each, the class’s before the method’s, each in source order', async () => {
      @Controller('stacked')
      @DeferWork(step('class 1'))
      @DeferWork(ByClass)
      class StackedController {
        @DeferWork(step('method 1'))
        @Get()
        @DeferWork(step('method 2'))
        @UseGuards(OpenGuard)
        @NoCompression()
        @DeferWork(step('method 3'))
        get() {
          defer(() => void steps.push('defer()'));
          return 1;
        }
        @Post()
        post() {
          return 2;
        }
      }
      const built = await listening([StackedController], [ByClass]);
      expect(await ranIn(built, '/stacked')).toEqual([
        'defer()',
        'class 1 1',
        'by class',
        'method 1 1',
        'method 2 1',
        'method 3 1',
      ]);
      expect(await ranIn(built, '/stacked', { method: 'POST' })).toEqual(['class 1 2', 'by class']);
    });

    it('above, below and around a transaction: in source order, when it has ended', async () => {
      @Controller('around')
      @DeferWork(step('class'))
      class AroundController {
        @Get()
        @DeferWork(step('above'))
        @Transactional()
        @DeferWork(step('below'))
        get() {
          return 1;
        }
      }
      const built = await listening([AroundController]);
      expect(await ranIn(built, '/around')).toEqual(['begin', 'end', 'class 1', 'above 1', 'below 1']);
    });

    it('below a decorator that carries nothing over: it runs all the same', async () => {
      @Controller('hidden')
      class HiddenController {
        @Get()
        @Timed()
        @DeferWork(step('below'))
        @DeferWork(ByClass)
        get() {
          return 1;
        }
      }
      const built = await listening([HiddenController], [ByClass]);
      expect(await ranIn(built, '/hidden')).toEqual(['below 1', 'by class']);
    });

    it('on an inherited method: for the base and for each that inherits it, with the class’s own work', async () => {
      @Controller('base')
      class BaseController {
        @Get('kept')
        @DeferWork(step('kept'))
        kept(): unknown {
          return this.constructor.name;
        }
        @Get('same')
        @DeferWork(step('same of the base'))
        same(): unknown {
          return 'base';
        }
        @Get('called')
        @DeferWork(step('called'))
        called(): unknown {
          return 'base';
        }
      }
      @Controller('first')
      @DeferWork(step('first'))
      class FirstController extends BaseController {
        @Get('same')
        override same() {
          return 'first';
        }
      }
      @Controller('second')
      class SecondController extends BaseController {
        @Get('same')
        @DeferWork(step('same of the second'))
        override same() {
          return 'second';
        }
        @Get('called')
        override called() {
          return `second, before: ${String(super.called())}`;
        }
      }
      const built = await listening([FirstController, SecondController, BaseController]);
      expect(await ranIn(built, '/base/kept')).toEqual(['kept "BaseController"']);
      expect(await ranIn(built, '/first/kept')).toEqual(['first "FirstController"', 'kept "FirstController"']);
      expect(await ranIn(built, '/second/kept')).toEqual(['kept "SecondController"']);
      expect(await ranIn(built, '/base/same')).toEqual(['same of the base "base"']);
      expect(await ranIn(built, '/first/same')).toEqual(['first "first"']);
      expect(await ranIn(built, '/second/same')).toEqual(['same of the second "second"']);
      // The wrapper is what is called.
      expect(await ranIn(built, '/second/called')).toEqual(['called "base"']);
    });

    it('of a method that calls that of its base, where the base is no controller', async () => {
      abstract class Base {
        @DeferWork(step('of the base'))
        @Post()
        create(): unknown {
          return { id: 1 };
        }
      }
      @Controller('derived')
      class DerivedController extends Base {
        @Post()
        override create() {
          return super.create();
        }
      }
      const built = await listening([DerivedController]);
      expect(await ranIn(built, '/derived', { method: 'POST' })).toEqual(['of the base {"id":1}']);
    });

    it('of a handler that another one calls: it gets what it gets without the decorator, and both works run', async () => {
      @Controller('calls')
      class CallingController {
        @Get('list')
        @DeferWork(step('list'))
        list() {
          return [1, 2, 3];
        }
        @Get('count')
        @DeferWork(step('count'))
        count() {
          return { count: this.list().length };
        }
        @Get('observable')
        @DeferWork(step('observable'))
        observable() {
          return of(1, 2);
        }
        @Get('piped')
        piped() {
          return this.observable() instanceof Observable;
        }
        @Get('fails')
        @DeferWork(step('fails'), { when: 'always' })
        fails(): string {
          throw new Error('told at once');
        }
        @Get('caught')
        caught() {
          try {
            return this.fails();
          } catch {
            return 'caught';
          }
        }
      }
      const built = await listening([CallingController]);
      expect(await (await fetch(`${built.url}/calls/count`)).json()).toEqual({ count: 3 });
      expect(await (await fetch(`${built.url}/calls/piped`)).text()).toBe('true');
      expect(await (await fetch(`${built.url}/calls/caught`)).text()).toBe('caught');
      expect(await ranIn(built, '/calls/count')).toEqual(['count {"count":3}', 'list [1,2,3]']);
    });

    it('a controller in a test of its own, without an application, is called as it is written', () => {
      class PlainController {
        @DeferWork(step('work'))
        @Experiment('gate')
        @NoCompression()
        get(id: string) {
          return { id };
        }
      }
      expect(new PlainController().get('7')).toEqual({ id: '7' });
      expect(steps).toEqual([]);
    });

    it('beside events, works have no result', async () => {
      @Controller('events')
      class EventsController {
        @Sse()
        @DeferWork(step('events'))
        events() {
          return of({ data: 'one' });
        }
      }
      const built = await listening([EventsController]);
      expect(await ranIn(built, '/events')).toEqual(['events undefined']);
    });
  });

  it('@Experiment, @NoCompression, @SkipPerf and @SlowMs on a class reach its own and its inherited routes, and no others', async () => {
    class Base {
      @Get('inherited')
      inherited() {
        return { text: TEN_KB };
      }
    }
    @Controller('marked')
    @Experiment('gate')
    @NoCompression()
    @SlowMs(0.000_1)
    class MarkedController extends Base {
      @Get('own')
      own() {
        return { text: TEN_KB };
      }
    }
    @Controller('skipped')
    @SkipPerf()
    class SkippedController extends Base {}
    @Controller('plain')
    class PlainController extends Base {}
    const built = await listening([MarkedController, SkippedController, PlainController]);
    const encodings: Record<string, unknown> = {};
    for (const path of ['/marked/own', '/marked/inherited', '/skipped/inherited', '/plain/inherited']) {
      encodings[path] = (await callAccepting(built.url + path, 'gzip')).headers['content-encoding'];
    }
    await settle(built.app);
    expect(encodings).toEqual({
      '/marked/own': undefined,
      '/marked/inherited': undefined,
      '/skipped/inherited': 'gzip',
      '/plain/inherited': 'gzip',
    });
    const records = await recordsOf(built, 3);
    expect(records.map(({ route, handler, variants }) => [route, handler, variants?.['gate'] ?? null])).toEqual([
      ['/marked/own', 'MarkedController.own', 'on'],
      ['/marked/inherited', 'MarkedController.inherited', 'on'],
      ['/plain/inherited', 'PlainController.inherited', null],
    ]);
    expect(steps).toEqual(['slow', 'slow']);
    expect(
      Reflect.getOwnMetadataKeys(Base.prototype.inherited)
        .map(String)
        .filter((key) => key.startsWith('perf:')),
    ).toEqual([]);
  });

  it('@NoCompression holds for what an interceptor answers in the place of the handler, as caches do, and for subclasses', async () => {
    class CachingInterceptor implements NestInterceptor {
      intercept() {
        return of({ text: TEN_KB });
      }
    }
    @Controller('cached')
    @UseInterceptors(CachingInterceptor)
    class CachedController {
      @Get('secret')
      @NoCompression()
      secret() {}
      @Get('open')
      open() {}
    }
    @NoCompression()
    abstract class SecretController {
      @Get('overridden')
      overridden(): object {
        return {};
      }
    }
    @Controller('secrets')
    class OwnSecretController extends SecretController {
      @Get('overridden')
      override overridden() {
        return { text: TEN_KB };
      }
      @Get('added')
      added() {
        return { text: TEN_KB };
      }
    }
    const built = await listening([CachedController, OwnSecretController]);
    const encodings = [];
    for (const path of ['cached/secret', 'cached/open', 'secrets/overridden', 'secrets/added']) {
      const { headers, text } = await callAccepting(`${built.url}/${path}`, 'gzip');
      encodings.push([path, headers['content-encoding'], JSON.parse(text)]);
    }
    expect(encodings).toEqual([
      ['cached/secret', undefined, { text: TEN_KB }],
      ['cached/open', 'gzip', { text: TEN_KB }],
      ['secrets/overridden', undefined, { text: TEN_KB }],
      ['secrets/added', undefined, { text: TEN_KB }],
    ]);
  });

  it('a rule that a decorator keeps by the method itself is found where it stands above ours, and not below', async () => {
    const rules = new WeakMap<object, string>();
    const Rule =
      (rule: string): MethodDecorator =>
      (_target, _key, { value }) =>
        void rules.set(value as object, rule);
    const found: unknown[] = [];
    class FindingGuard implements CanActivate {
      canActivate(context: ExecutionContext) {
        found.push(rules.get(context.getHandler()));
        return true;
      }
    }
    @Controller('rules')
    @UseGuards(FindingGuard)
    class RulesController {
      @Get('above')
      @Rule('above')
      @DeferWork(step('work'))
      above() {}
      @Get('below')
      @DeferWork(step('work'))
      @Rule('below')
      below() {}
    }
    const built = await listening([RulesController]);
    for (const path of ['above', 'below']) await fetch(`${built.url}/rules/${path}`);
    expect(found).toEqual(['above', undefined]);
  });
});
