import {
  type ArgumentMetadata,
  type CanActivate,
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ContextIdFactory, INQUIRER, ModuleRef, REQUEST } from '@nestjs/core';
import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { bothForms } from './applications.js';

interface IncomingRequest {
  url: string;
  headers: Record<string, string | undefined>;
}

/** Counts how many of a class one application has made. */
@Injectable()
class Counter {
  readonly made: Record<string, number> = {};
  next(name: string): number {
    return (this.made[name] = (this.made[name] ?? 0) + 1);
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestScoped {
  readonly number: number;
  constructor(
    counter: Counter,
    @Inject(REQUEST) readonly request: IncomingRequest,
  ) {
    this.number = counter.next('request');
  }
}

@Injectable({ scope: Scope.TRANSIENT })
class Transient {
  readonly number: number;
  readonly askedBy: string;
  constructor(counter: Counter, @Inject(INQUIRER) parent: object) {
    this.number = counter.next('transient');
    this.askedBy = parent.constructor.name;
  }
}

@Injectable()
class OtherHost {
  constructor(readonly transient: Transient) {}
}

@Injectable({ scope: Scope.REQUEST })
class ScopedGuard implements CanActivate {
  constructor(private readonly scoped: RequestScoped) {}
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<IncomingRequest & { seen: unknown[] }>();
    request.seen = [`guard ${this.scoped.request === request} ${context.getClass().name}.${context.getHandler().name}`];
    return request.headers['x-refused'] === undefined;
  }
}

@Injectable({ scope: Scope.REQUEST })
class ScopedPipe implements PipeTransform {
  constructor(private readonly scoped: RequestScoped) {}
  transform(value: string, { type, data }: ArgumentMetadata) {
    return `${type} ${data} ${value} of ${this.scoped.request.url}`;
  }
}

@Injectable({ scope: Scope.REQUEST })
class ScopedInterceptor implements NestInterceptor {
  constructor(private readonly scoped: RequestScoped) {}
  intercept(context: ExecutionContext, next: CallHandler) {
    const names = [context.getClass().name, context.getHandler().name];
    return next.handle().pipe(map((value: object) => ({ ...value, interceptor: this.scoped.number, names })));
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
@UseGuards(ScopedGuard)
@UseInterceptors(ScopedInterceptor)
class ScopedController {
  private readonly number: number;
  constructor(
    counter: Counter,
    private readonly scoped: RequestScoped,
    private readonly transient: Transient,
    @Inject(REQUEST) private readonly request: IncomingRequest & { seen: unknown[] },
  ) {
    this.number = counter.next('controller');
  }
  @Get(':id')
  one(@Param('id', ScopedPipe) id: string) {
    const { number, scoped, transient, request } = this;
    return { number, scoped: scoped.number, transient: transient.askedBy, same: scoped.request === request, id };
  }
  @Get(':id/seen')
  async seen() {
    await new Promise((resolve) => setImmediate(resolve));
    return { seen: this.request.seen, parameters: arguments.length };
  }
}

/** Request-scoped by what it is given. */
@Controller('derived')
class DerivedController {
  constructor(
    private readonly first: RequestScoped,
    private readonly second: RequestScoped,
  ) {}
  @Get()
  one() {
    return { same: this.first === this.second, number: this.first.number, url: this.first.request.url };
  }
}

@Controller('singleton')
class SingletonController {
  private readonly number: number;
  constructor(
    private readonly counter: Counter,
    private readonly transient: Transient,
    private readonly other: OtherHost,
    private readonly modules: ModuleRef,
  ) {
    this.number = counter.next('singleton');
  }
  @Get()
  one() {
    const { number, transient, other } = this;
    return { number, differ: transient !== other.transient, askedBy: [transient.askedBy, other.transient.askedBy] };
  }
  @Get('made')
  made() {
    return this.counter.made;
  }
  @Get('resolved')
  async resolved() {
    const contextId = ContextIdFactory.create();
    this.modules.registerRequestByContextId({ url: 'of its own', headers: {} }, contextId);
    const one = await this.modules.resolve(RequestScoped, contextId, { strict: false });
    const same = await this.modules.resolve(RequestScoped, contextId, { strict: false });
    return { same: one === same, url: one.request.url };
  }
}

describe.each(acrossNests('fastify'))('scopes on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, () => ({
    controllers: [ScopedController, DerivedController, SingletonController],
    providers: [Counter, RequestScoped, Transient, OtherHost],
  }));

  it('makes a request-scoped controller and what it needs anew for each request', async () => {
    const first = (await json('/scoped/7')) as Record<string, unknown>;
    const second = (await json('/scoped/8')) as Record<string, unknown>;
    expect(first).toMatchObject({
      names: ['ScopedController', 'one'],
      same: true,
      transient: 'ScopedController',
      id: 'param id 7 of /scoped/7',
    });
    expect(second).toMatchObject({ id: 'param id 8 of /scoped/8', interceptor: second['scoped'] });
    expect(second['number']).toBe((first['number'] as number) + 1);
    expect(second['scoped']).toBe((first['scoped'] as number) + 1);
  });

  it('gives the handler of a request-scoped controller no parameter that it has not asked for', async () => {
    expect(await json('/scoped/7/seen')).toMatchObject({
      seen: ['guard true ScopedController.seen'],
      parameters: 0,
    });
  });

  it('lets a request-scoped guard refuse', async () => {
    const { status } = await ask('/scoped/7', { headers: { 'x-refused': '1' } });
    expect(status).toBe(403);
  });

  it('shares a request-scoped provider within one request', async () => {
    const first = (await json('/derived')) as { number: number };
    const second = (await json('/derived?again')) as { number: number };
    expect(first).toMatchObject({ same: true, url: '/derived' });
    expect(second).toEqual({ same: true, url: '/derived?again', number: first.number + 1 });
  });

  it('makes a transient provider for each that asks, once', async () => {
    const expected = { number: 1, differ: true, askedBy: ['SingletonController', 'OtherHost'] };
    expect(await json('/singleton')).toEqual(expected);
    expect(await json('/singleton')).toEqual(expected);
  });

  it('makes as many instances as Nest does', async () => {
    expect(await json('/singleton/made')).toMatchObject({ singleton: 1 });
  });

  it('resolves request-scoped providers by a context of their own', async () => {
    expect(await json('/singleton/resolved')).toEqual({ same: true, url: 'of its own' });
  });
});
