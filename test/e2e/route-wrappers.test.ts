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
