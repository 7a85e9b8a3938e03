import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Get, Param, Scope } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { Deferrer, DeferWork } from '../../src/index.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';

let steps: string[] = [];

/** As a logging library's decorator does. */
function Replaced(): MethodDecorator {
  return (_target, _key, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as (...given: unknown[]) => unknown;
    descriptor.value = async function (this: unknown, ...given: unknown[]): Promise<unknown> {
      return method.apply(this, given);
    };
  };
}

@Controller('works')
class WorksController {
  @Get()
  @DeferWork(() => void steps.push('work'))
  async works() {
    return 'done';
  }
}
@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController {
  @Get()
  @DeferWork(() => void steps.push('work'))
  @Replaced()
  async works() {
    return 'done';
  }
}
@Controller('frozen')
class FrozenController {
  constructor() {
    Object.freeze(this);
  }
  @Get(':id')
  @DeferWork(() => void steps.push('work'))
  works(@Param('id') id: string, options: unknown = 'default') {
    return { id, options, given: arguments.length };
  }
}

describe.each(adapters)('what an application does with its objects, on %s', (adapter) => {
  let running: TestApp;
  afterEach(() => running.close());
  const start = async (middleware?: (request: IncomingMessage, response: ServerResponse) => void) => {
    steps = [];
    running = await startApp(adapter, {
      metadata: { controllers: [WorksController, ScopedController, FrozenController] },
      beforeInit: (app) => {
        if (middleware === undefined) return;
        app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
          response.once('finish', () => steps.push('response'));
          middleware(request, response);
          next();
        });
      },
    });
  };

  it.each<[string, (request: IncomingMessage, response: ServerResponse) => void]>([
    ['the raw body on its request', (request) => void Object.assign(request, { raw: Buffer.from('body') })],
    [
      '`raw` and `stream` on its response',
      (_request, response) => void Object.assign(response, { raw: {}, stream: null }),
    ],
  ])('%s: the request still ends, and work runs after it', async (_what, middleware) => {
    await start(middleware);
    expect(await (await fetch(`${running.url}/works`)).text()).toBe('done');
    expect(await running.requests()).toMatchObject([{ route: '/works', status: 200, outcome: 'completed' }]);
    await running.app.get(Deferrer).idle();
    expect(steps).toEqual(['response', 'work']);
  });

  it('a decorator that replaces the method of a request-scoped controller: its work runs', async () => {
    await start();
    await fetch(`${running.url}/scoped`);
    await running.requests();
    expect(steps).toEqual(['work']);
  });

  it('an instance that freezes itself is called as it is written, and its work runs', async () => {
    await start();
    const answer: unknown = await (await fetch(`${running.url}/frozen/7`)).json();
    expect(answer).toEqual({ id: '7', options: 'default', given: 1 });
    await running.requests();
    expect(steps).toEqual(['work']);
  });
});
