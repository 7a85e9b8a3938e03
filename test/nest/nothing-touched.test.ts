import { isDeepStrictEqual } from 'node:util';
import {
  type ArgumentsHost,
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Header,
  Injectable,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Post,
  Res,
  Scope,
  SetMetadata,
  Sse,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { getOrAdd } from '../../src/core/get-or-add.js';
import { DeferWork, Experiment, NoCompression, SharedResponse, SkipPerf, SlowMs } from '../../src/index.js';
import { type Adapter, acrossNests } from '../fixtures/app.js';
import { withEventLoop } from '../fixtures/usual.js';
import { type Application, type Form, startApplication } from './applications.js';

withEventLoop();

type Handler = (...parameters: unknown[]) => unknown;
type Decorate = (decorator: MethodDecorator & ClassDecorator) => MethodDecorator & ClassDecorator;
interface Seen {
  readonly name: string;
  readonly by: string;
  readonly isOfClass: boolean;
  readonly rule: string | undefined;
  readonly own: unknown;
}

/**
 * Every kind of handler and provider, anew for each application. Guards keep their rules by the method itself. With `ours` some
 * methods have decorators of this library's, below the one that keeps the rule.
 */
function build({ ours }: { ours: boolean }) {
  const our: Decorate = (decorator) => (ours ? decorator : () => {});
  const rules = new WeakMap<object, string>();
  const Rule =
    (rule: string): MethodDecorator =>
    (_target, _key, descriptor) =>
      void rules.set(descriptor.value as object, rule);
  const seen: Seen[] = [];
  const scoped: object[] = [];
  const works: string[] = [];

  const look = (by: string, context: ExecutionContext): Seen => {
    const handler = context.getHandler();
    const name = handler.name;
    const { prototype } = context.getClass() as Type<Record<string, Handler>>;
    const told = {
      name,
      by,
      isOfClass: handler === prototype[name],
      rule: rules.get(handler),
      own: Reflect.getOwnMetadata('own', handler) as unknown,
    };
    seen.push(told);
    return told;
  };
  const roleOf = (context: ExecutionContext): string =>
    context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-role'] ?? '';

  @Injectable()
  class RuleGuard implements CanActivate {
    canActivate(context: ExecutionContext) {
      return look('guard', context).rule === roleOf(context);
    }
  }
  @Injectable()
  class LookingInterceptor implements NestInterceptor {
    intercept(context: ExecutionContext, next: CallHandler) {
      look('interceptor', context);
      return next.handle();
    }
  }
  @Injectable()
  class NumberPipe implements PipeTransform<string, number> {
    transform(value: string) {
      if (Number.isNaN(Number(value))) throw new BadRequestException('no number');
      return Number(value);
    }
  }
  @Catch(BadRequestException)
  class TeapotFilter implements ExceptionFilter {
    catch(_error: unknown, host: ArgumentsHost) {
      const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: string): void } }>();
      response.status(418).send('no number');
    }
  }

  abstract class BaseController {
    readonly base = 'base';
    @Get('inherited')
    @Rule('user')
    @SetMetadata('own', 'inherited')
    inherited() {
      return `inherited ${this.base}`;
    }
    @Get('inherited-ours')
    @Rule('user')
    @our(DeferWork(() => void works.push('inherited')))
    @SetMetadata('own', 'inherited-ours')
    inheritedOurs() {
      return `inherited ${this.base}`;
    }
    @Get('hidden')
    @Rule('nobody')
    overridden() {
      return 'of the base';
    }
  }

  @Controller('every')
  @UseGuards(RuleGuard)
  @UseInterceptors(LookingInterceptor)
  class EveryController extends BaseController {
    readonly field = 'field';
    readonly arrow = () => this.field;
    @Get('plain')
    @Rule('user')
    @SetMetadata('own', 'plain')
    plain() {
      return `plain ${this.field} ${this.arrow()}`;
    }
    @Get('async')
    @Rule('user')
    async async() {
      await Promise.resolve();
      return 'async';
    }
    @Get('observable')
    @Rule('user')
    @Header('x-own', 'header')
    observable() {
      return of(1, 2).pipe(map((value) => ({ value })));
    }
    @Get('response')
    @Rule('user')
    response(@Res() response: { send(body: string): void }) {
      response.send('by itself');
    }
    @Sse('events')
    @Rule('user')
    events() {
      return of({ data: 'one' }, { data: 'two' });
    }
    @Get('piped/:id')
    @Rule('admin')
    @UsePipes(NumberPipe)
    @UseFilters(TeapotFilter)
    piped(@Param('id') id: number) {
      return { id };
    }
    @Get('overridden')
    @Rule('user')
    override overridden() {
      return `of the subclass, before: ${super.overridden()}`;
    }
    @Get('ours')
    @Rule('admin')
    @our(SkipPerf())
    @our(SlowMs(50))
    @our(DeferWork(() => void works.push('ours')))
    @our(Experiment('gate'))
    @our(NoCompression())
    @SetMetadata('own', 'ours')
    ours() {
      return 'ours';
    }
    @Get('shared')
    @Rule('user')
    @our(SharedResponse({ ttlMs: 60_000 }) as MethodDecorator & ClassDecorator)
    shared() {
      return { shared: true };
    }
    private helper() {
      return 'helper';
    }
    untouched() {
      return this.helper();
    }
  }

  @Controller({ path: 'scoped', scope: Scope.REQUEST })
  @UseGuards(RuleGuard)
  class ScopedController {
    readonly field = 'scoped';
    constructor() {
      scoped.push(this);
    }
    @Post()
    @Rule('user')
    @SetMetadata('own', 'scoped')
    create() {
      return this.field;
    }
    @Post('ours')
    @Rule('user')
    @our(DeferWork(() => void works.push('scoped')))
    scopedOurs() {
      return this.field;
    }
  }

  /** As gateways and schedulers mark their methods. */
  @Injectable()
  class Gateway {
    readonly clients = new Set<string>();
    @SetMetadata('websockets:message_mapping', true)
    @SetMetadata('message', 'hello')
    hello(name: string) {
      this.clients.add(name);
      return [...this.clients];
    }
  }
  @Injectable()
  class Nightly {
    runs = 0;
    @SetMetadata('SCHEDULER_TYPE', 1)
    @SetMetadata('SCHEDULE_CRON_OPTIONS', { cronTime: '0 3 * * *' })
    run() {
      this.runs += 1;
    }
  }

  const enhancers: Type[] = [RuleGuard, LookingInterceptor, NumberPipe, TeapotFilter];
  const classes: Type[] = [EveryController, ScopedController, Gateway, Nightly, ...enhancers];
  const application: Application = {
    controllers: [EveryController, ScopedController],
    providers: [Gateway, Nightly, ...enhancers],
  };
  const all: object[] = [...classes, BaseController];
  return {
    application,
    classes,
    all: all as Type[],
    singletons: classes.filter((one) => one !== ScopedController),
    seen,
    scoped,
    works,
  };
}

type Parts = Map<string, unknown>;
const copyOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return [...(value as unknown[])];
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
    ? { ...value }
    : value;
};

/** All of an object that can be seen from outside: its keys with their descriptors, and its metadata with its keys'. */
function takeApart(name: string, target: object, parts: Parts): Parts {
  parts.set(`${name} prototype`, Object.getPrototypeOf(target));
  takeMetadata(name, parts, target);
  for (const key of Reflect.ownKeys(target)) {
    const descriptor = Object.getOwnPropertyDescriptor(target, key)!;
    parts.set(`${name}.${String(key)}`, { ...descriptor });
    takeMetadata(`${name}[${String(key)}]`, parts, target, key);
    const value: unknown = descriptor.value;
    if (typeof value !== 'function' || key === 'constructor') continue;
    parts.set(`${name}.${String(key)}()`, [value.name, value.length, ...Reflect.ownKeys(value)]);
    takeMetadata(`${name}.${String(key)}()`, parts, value);
  }
  return parts;
}
function takeMetadata(name: string, parts: Parts, target: object, key?: string | symbol): void {
  for (const each of Reflect.getOwnMetadataKeys(target, key!) as unknown[]) {
    parts.set(`${name} @${String(each)}`, copyOf(Reflect.getOwnMetadata(each, target, key!)));
  }
}
function takeClassesApart(classes: readonly Type[]): Parts {
  const parts: Parts = new Map();
  for (const one of classes) {
    takeApart(one.name, one, parts);
    takeApart(`${one.name}.prototype`, one.prototype as object, parts);
    // Nest keeps the parameters of a handler on its class, by the handler's name.
    for (const key of Reflect.ownKeys(one.prototype as object))
      takeMetadata(`${one.name}[${String(key)}]`, parts, one, key);
  }
  return parts;
}
function takeAdapterApart(adapter: object): Parts {
  const parts = takeApart('adapter', adapter, new Map());
  for (
    let at = Object.getPrototypeOf(adapter) as object;
    at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object
  ) {
    takeApart(at.constructor.name, at, parts);
  }
  return parts;
}
const differences = (before: Parts, after: Parts): string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => !isDeepStrictEqual(before.get(key), after.get(key)),
  );

const requests: [method: string, path: string, role: string][] = [
  ['GET', '/every/plain', 'user'],
  ['GET', '/every/plain', ''],
  ['GET', '/every/async', 'user'],
  ['GET', '/every/observable', 'user'],
  ['GET', '/every/response', 'user'],
  ['GET', '/every/events', 'user'],
  ['GET', '/every/piped/7', 'admin'],
  ['GET', '/every/piped/x', 'admin'],
  ['GET', '/every/piped/7', 'user'],
  ['GET', '/every/inherited', 'user'],
  ['GET', '/every/inherited', ''],
  ['GET', '/every/inherited-ours', 'user'],
  ['GET', '/every/inherited-ours', ''],
  ['GET', '/every/overridden', 'user'],
  ['GET', '/every/overridden', 'nobody'],
  ['GET', '/every/hidden', 'nobody'],
  ['GET', '/every/ours', 'admin'],
  ['GET', '/every/ours', 'user'],
  ['GET', '/every/shared', 'user'],
  ['GET', '/every/shared', 'user'],
  ['GET', '/every/shared', ''],
  ['POST', '/scoped', 'user'],
  ['POST', '/scoped', ''],
  ['POST', '/scoped/ours', 'user'],
  ['POST', '/scoped/ours', ''],
];

/** One application from before its boot to after its end, with what was seen of it. */
async function live(form: Form, adapter: Adapter, ours: boolean) {
  const built = build({ ours });
  const { all, application, singletons, seen, scoped } = built;
  const before = takeClassesApart(all);
  let adapterBefore: Parts = new Map();
  let instancesBefore: Parts = new Map();
  const instances = (get: (type: Type) => object): Parts => {
    const parts: Parts = new Map();
    for (const type of singletons) takeApart(type.name.toLowerCase(), get(type), parts);
    return parts;
  };
  const { app, url, close } = await startApplication(form, adapter, {
    ...application,
    main: (app) => {
      adapterBefore = takeAdapterApart(app.getHttpAdapter());
      instancesBefore = instances((type) => app.get<object>(type));
    },
  });
  const answers: unknown[] = [];
  for (const [method, path, role] of requests) {
    const response = await fetch(url + path, { method, headers: { 'x-role': role } });
    answers.push([method, path, role, response.status, await response.text()]);
  }
  const changed = {
    classes: differences(before, takeClassesApart(all)),
    adapter: differences(adapterBefore, takeAdapterApart(app.getHttpAdapter())),
    instances: differences(
      instancesBefore,
      instances((type) => app.get<object>(type)),
    ),
  };
  const scopedKeys = scoped.map((instance) => [...takeApart('scoped', instance, new Map()).keys()]);
  await close();
  const after = { classes: differences(before, takeClassesApart(all)) };
  return { ...built, before, answers, changed, after, scopedKeys, seen };
}

describe.each(acrossNests('express'))('on %s', (adapter) => {
  const lives = new Map<string, ReturnType<typeof live>>();
  /** Several tests look at one life. */
  const liveOnce = (form: Form, ours: boolean) => getOrAdd(lives, `${form} ${ours}`, () => live(form, adapter, ours));

  it('classes, prototypes, instances and the adapter are what they are without the module', async () => {
    const bare = await liveOnce('bare', false);
    const instrumented = await liveOnce('instrumented', false);
    expect(instrumented.answers).toEqual(bare.answers);
    expect(instrumented.seen).toEqual(bare.seen);
    expect(instrumented.changed.classes).toEqual(bare.changed.classes);
    expect(instrumented.after).toEqual(bare.after);
    expect(instrumented.changed.instances).toEqual(bare.changed.instances);
    expect(instrumented.changed.instances).toEqual([]);
    expect(instrumented.scopedKeys).toEqual(bare.scopedKeys);
    // What Nest's own `setOnRouteTriggered()` keeps there.
    const own = adapter === 'express' ? ['adapter.onRouteTriggered'] : [];
    const withoutOwn = instrumented.changed.adapter.filter((part) => !own.includes(part.replace('()', '')));
    expect(withoutOwn).toEqual(bare.changed.adapter);
    expect([...instrumented.before.keys()]).toEqual([...bare.before.keys()]);
    expect([...bare.before.keys()]).toContain('EveryController[piped] @__routeArguments__');
  });

  it('with our decorators, only the methods differ that they decorate, and none differs through the boot', async () => {
    const without = await liveOnce('instrumented', false);
    const withOurs = await liveOnce('instrumented', true);
    // Two builds have two functions for a method: their texts are compared.
    const textOf = (parts: Parts, key: string): unknown => {
      const part = parts.get(key) as PropertyDescriptor | undefined;
      return typeof part?.value === 'function' ? { ...part, value: String(part.value) } : part;
    };
    const keys = [...withOurs.before.keys()];
    const methods = keys.filter((key) => /\.prototype\.\w+$/.test(key));
    const wrapped = methods.filter(
      (key) => !isDeepStrictEqual(textOf(withOurs.before, key), textOf(without.before, key)),
    );
    expect(wrapped.toSorted()).toEqual([
      'BaseController.prototype.inheritedOurs',
      'EveryController.prototype.ours',
      'ScopedController.prototype.scopedOurs',
    ]);
    // `@SharedResponse()` adds a guard and a filter, as Nest's own decorators do.
    const marked = keys.filter((key) => !without.before.has(key)).map((key) => key.replace(/\(\) @.*/, ''));
    expect([...new Set(marked)].toSorted()).toEqual([
      'BaseController.prototype.inheritedOurs',
      'EveryController.prototype.ours',
      'EveryController.prototype.shared',
      'ScopedController.prototype.scopedOurs',
    ]);
    expect([...without.before.keys()].filter((key) => !withOurs.before.has(key))).toEqual([]);
    expect(withOurs.changed.classes).toEqual(without.changed.classes);
    expect(withOurs.changed.instances).toEqual([]);
    expect(withOurs.after).toEqual(without.after);
    expect(withOurs.scopedKeys).toEqual(without.scopedKeys);
  });

  it.each([
    ['bare', false],
    ['instrumented', false],
    ['instrumented', true],
    // Without the module our decorators do nothing.
    ['bare', true],
  ] as const)(
    'guards that keep rules by the method let in whom they should, %s, with our decorators: %s',
    async (form, ours) => {
      const { answers, seen, works } = await liveOnce(form, ours);
      const no = expect.stringContaining('Forbidden') as unknown;
      expect(answers).toEqual([
        ['GET', '/every/plain', 'user', 200, 'plain field field'],
        ['GET', '/every/plain', '', 403, no],
        ['GET', '/every/async', 'user', 200, 'async'],
        ['GET', '/every/observable', 'user', 200, '{"value":2}'],
        ['GET', '/every/response', 'user', 200, 'by itself'],
        ['GET', '/every/events', 'user', 200, expect.stringMatching(/data: one\n[^]*data: two\n/)],
        ['GET', '/every/piped/7', 'admin', 200, '{"id":7}'],
        ['GET', '/every/piped/x', 'admin', 418, 'no number'],
        ['GET', '/every/piped/7', 'user', 403, no],
        ['GET', '/every/inherited', 'user', 200, 'inherited base'],
        ['GET', '/every/inherited', '', 403, no],
        ['GET', '/every/inherited-ours', 'user', 200, 'inherited base'],
        ['GET', '/every/inherited-ours', '', 403, no],
        ['GET', '/every/overridden', 'user', 200, 'of the subclass, before: of the base'],
        ['GET', '/every/overridden', 'nobody', 403, no],
        ['GET', '/every/hidden', 'nobody', 404, expect.anything()],
        ['GET', '/every/ours', 'admin', 200, 'ours'],
        ['GET', '/every/ours', 'user', 403, no],
        ['GET', '/every/shared', 'user', 200, '{"shared":true}'],
        ['GET', '/every/shared', 'user', 200, '{"shared":true}'],
        ['GET', '/every/shared', '', 403, no],
        ['POST', '/scoped', 'user', 201, 'scoped'],
        ['POST', '/scoped', '', 403, no],
        ['POST', '/scoped/ours', 'user', 201, 'scoped'],
        ['POST', '/scoped/ours', '', 403, no],
      ]);
      // `context.getHandler()` is the method of the class: identity, and metadata of its own.
      expect(seen.filter(({ isOfClass }) => !isOfClass)).toEqual([]);
      expect(seen.filter(({ rule }) => rule === undefined)).toEqual([]);
      const own = new Map(seen.map(({ name, own }) => [name, own]));
      expect(own.get('plain')).toBe('plain');
      expect(own.get('inherited')).toBe('inherited');
      expect(own.get('inheritedOurs')).toBe('inherited-ours');
      expect(own.get('ours')).toBe('ours');
      expect(own.get('create')).toBe('scoped');
      expect(new Set(seen.map(({ by }) => by))).toEqual(new Set(['guard', 'interceptor']));
      expect(works.toSorted()).toEqual(form === 'instrumented' && ours ? ['inherited', 'ours', 'scoped'] : []);
    },
  );
});
