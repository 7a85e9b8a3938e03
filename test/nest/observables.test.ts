/* eslint-disable unicorn/no-thenable -- what becomes of them is what is tested */
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type NestInterceptor,
  Param,
  Scope,
  UseInterceptors,
} from '@nestjs/common';
import { concat, EMPTY, from, map, Observable, of, Subject, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { bothForms } from './applications.js';

/** No native promise: each use of it counts. */
class Thenable {
  static used = 0;
  then(resolve: (value: unknown) => void) {
    Thenable.used += 1;
    setImmediate(resolve, { from: 'a thenable' });
  }
  static take() {
    const { used } = Thenable;
    Thenable.used = 0;
    return { used };
  }
}

class OwnPromise<T> extends Promise<T> {
  static used = 0;
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    OwnPromise.used += 1;
    return super.then(onFulfilled, onRejected);
  }
}

class PassingOn implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle();
  }
}
class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value: unknown) => ({ value })));
  }
}

let subscriptions = 0;

abstract class Values {
  @Get('several')
  several() {
    return from([{ n: 1 }, { n: 2 }, { n: 3 }]);
  }
  @Get('in-time')
  inTime() {
    return concat(of({ n: 1 }), timer(1).pipe(map(() => ({ n: 2 }))));
  }
  @Get('async')
  async asynchronous() {
    const values = new Subject<string>();
    setImmediate(() => {
      values.next('first');
      values.next('last');
      values.complete();
    });
    return values;
  }
  @Get('counted')
  counted() {
    return new Observable<number>((subscriber) => {
      subscriptions += 1;
      subscriber.next(subscriptions);
      subscriber.complete();
    });
  }
  @Get('none')
  none() {
    return EMPTY;
  }
  @Get('fails')
  fails() {
    return concat(
      of('lost'),
      throwError(() => new HttpException('from the stream', 418)),
    );
  }
  @Get('thenable')
  thenable() {
    return new Thenable();
  }
  @Get('own-promise')
  ownPromise() {
    return new OwnPromise((resolve) => setImmediate(resolve, { from: 'a subclass' }));
  }
  @Get('rejects/:how')
  rejects(@Param('how') how: string): unknown {
    const error = new HttpException(how, 409);
    if (how === 'thenable') return { then: (_resolve: unknown, reject: (reason: unknown) => void) => reject(error) };
    if (how === 'promise') return Promise.reject(error);
    throw error;
  }
}

@Controller('plain')
class PlainController extends Values {}
@Controller('intercepted')
@UseInterceptors(PassingOn)
class InterceptedController extends Values {}
@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController extends Values {}
@Controller('wrapped')
@UseInterceptors(PassingOn, Wrapping)
class WrappedController extends Values {}

const controllers = [PlainController, InterceptedController, ScopedController, WrappedController];

describe.each(acrossNests('fastify'))('what a handler may return on %s', (adapter) => {
  const { ask, alike } = bothForms(adapter, () => ({ controllers }));

  describe.each(['plain', 'intercepted', 'scoped'])('from a controller that is %s', (kind) => {
    it.each([
      ['several', '{"n":3}'],
      ['in-time', '{"n":2}'],
      ['async', 'last'],
      ['thenable', '{"from":"a thenable"}'],
      ['own-promise', '{"from":"a subclass"}'],
    ])('answers the last value of %s', async (path, text) => {
      expect(await ask(`/${kind}/${path}`)).toMatchObject({ status: 200, text });
    });

    it('subscribes to an observable once', async () => {
      subscriptions = 0;
      await alike(async ({ ask }) => {
        const before = subscriptions;
        await ask(`/${kind}/counted`);
        expect(subscriptions - before).toBe(1);
      });
    });

    it('answers the error of an observable', async () => {
      const { status, text } = await ask(`/${kind}/fails`);
      expect({ status, body: JSON.parse(text) }).toEqual({
        status: 418,
        body: { statusCode: 418, message: 'from the stream' },
      });
    });

    it('answers an observable without a value as Nest does', async () => {
      await ask(`/${kind}/none`);
    });

    it.each(['thenable', 'promise', 'throwing'])('answers what is rejected: %s', async (how) => {
      const { status, text } = await ask(`/${kind}/rejects/${how}`);
      expect({ status, body: JSON.parse(text) }).toEqual({ status: 409, body: { statusCode: 409, message: how } });
    });

    it('awaits a thenable once', async () => {
      Thenable.take();
      const counts = await alike(async ({ ask }) => {
        await ask(`/${kind}/thenable`);
        return Thenable.take();
      });
      expect(counts.used).toBe(1);
    });

    it('awaits a promise of a class of its own as often as Nest does', async () => {
      OwnPromise.used = 0;
      await alike(async ({ ask }) => {
        const before = OwnPromise.used;
        await ask(`/${kind}/own-promise`);
        return OwnPromise.used - before;
      });
    });
  });

  it.each([
    ['thenable', '{"value":{"from":"a thenable"}}'],
    ['own-promise', '{"value":{"from":"a subclass"}}'],
  ])('gives interceptors the value of %s', async (path, text) => {
    expect((await ask(`/wrapped/${path}`)).text).toBe(text);
  });
});
