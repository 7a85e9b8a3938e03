import { types } from 'node:util';
import { Controller, Get, Module, type NestModule, Inject } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import type { FastifyInstance } from '../../src/http/fastify.js';
import { startApp } from '../fixtures/app.js';

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

describe('a plugin that wraps route functions after this library (Fastify)', () => {
  it('gets from them the promises it would have got without it', async () => {
    const results: unknown[] = [];
    /** As tracing plugins do. */
    @Module({})
    class WrappingModule implements NestModule {
      constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
      configure(): void {
        this.host.httpAdapter.getInstance<FastifyInstance>().addHook('onRoute', (route) => {
          const { handler } = route;
          route.handler = function (request, reply) {
            const result = handler.call(this, request, reply);
            results.push(result);
            return result;
          };
        });
      }
    }
    const test = await startApp('fastify', {
      metadata: { controllers: [AnswersController], imports: [WrappingModule] },
    });
    const get = async (path: string, method = 'GET'): Promise<number> =>
      (await fetch(`${test.url}/${path}`, { method })).status;
    expect([await get('async'), await get('fails'), await get('async', 'HEAD')]).toEqual([200, 500, 200]);
    await test.close();
    expect(results).toHaveLength(3);
    for (const result of results) expect(types.isPromise(result)).toBe(true);
  });
});
