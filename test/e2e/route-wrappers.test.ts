import { types } from 'node:util';
import { Controller, Get, Inject, Module, type NestModule } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FastifyInstance } from '../../src/http/fastify.js';
import { startApp, type TestApp } from '../fixtures/app.js';

@Controller()
class AnswersController {
  @Get('async')
  async async(): Promise<{ hello: string }> {
    return { hello: 'world' };
  }
  @Get('fails')
  async fails(): Promise<never> {
    throw new Error('on purpose');
  }
}

describe('a plugin that wraps or copies route functions after this library has (Fastify)', () => {
  const results: unknown[] = [];
  /** As tracing plugins do; and each route once more, below another path. */
  @Module({})
  class WrappingModule implements NestModule {
    constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
    configure(): void {
      const fastify = this.host.httpAdapter.getInstance<FastifyInstance & { route: (route: object) => void }>();
      fastify.addHook('onRoute', (route) => {
        const { handler } = route;
        const wrapped: typeof handler = function (request, reply) {
          const result = handler.call(this, request, reply);
          results.push(result);
          return result;
        };
        if (route.url.startsWith('/copied')) return;
        if (route.method === 'GET') fastify.route({ ...route, url: `/copied${route.url}`, handler: wrapped });
        else route.handler = wrapped;
      });
    }
  }

  let test: TestApp;
  beforeAll(async () => {
    test = await startApp('fastify', { metadata: { controllers: [AnswersController], imports: [WrappingModule] } });
  });
  afterAll(() => test.close());

  it.each([
    ['HEAD', '/async', 200],
    ['GET', '/copied/async', 200],
    ['GET', '/copied/fails', 500],
  ])('gets promises from them: %s %s', async (method, path, status) => {
    results.length = 0;
    expect((await fetch(`${test.url}${path}`, { method })).status).toBe(status);
    expect(results.map((result) => types.isPromise(result))).toEqual([true]);
  });
});

describe('a plugin that puts something in the place of route functions (Fastify)', () => {
  const calls: string[] = [];
  @Module({})
  class ReplacingModule implements NestModule {
    constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
    configure(): void {
      this.host.httpAdapter.getInstance<FastifyInstance>().addHook('onRoute', (route) => {
        const { handler } = route;
        if (route.url === '/async') {
          route.handler = new Proxy(handler, {
            apply(target, self, parameters) {
              calls.push('proxy');
              return Reflect.apply(target, self, parameters) as unknown;
            },
          });
        } else if (route.url === '/fails') {
          route.handler = function (request, reply) {
            calls.push('bound');
            return handler.bind(this, request, reply)();
          };
        }
      });
    }
  }

  let test: TestApp;
  beforeAll(async () => {
    test = await startApp('fastify', { metadata: { controllers: [AnswersController], imports: [ReplacingModule] } });
  });
  afterAll(() => test.close());

  it.each([
    ['/async', 200, 'proxy'],
    ['/fails', 500, 'bound'],
  ])('is asked first: %s', async (path, status, call) => {
    calls.length = 0;
    const response = await fetch(`${test.url}${path}`);
    expect(response.status).toBe(status);
    expect(calls).toEqual([call]);
    expect(await response.text()).not.toContain('undefined');
  });
});
