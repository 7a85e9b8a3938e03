import { types } from 'node:util';
import { Controller, Get, Inject, Module, type NestModule } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { of } from 'rxjs';
import { afterEach, expect, it } from 'vitest';
import { DeferWork } from '../../src/index.js';
import { adapterOf } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';

@Controller()
class AnswersController {
  @Get('async')
  async async() {
    return 'done';
  }
  @Get('sync')
  sync() {
    return 'done';
  }
  @Get('observable')
  observable() {
    return of('done');
  }
  @Get('decorated')
  @DeferWork(() => {})
  async decorated() {
    return 'done';
  }
}

type RouteFunction = (this: unknown, request: unknown, reply: unknown) => unknown;
interface Hooked {
  addHook: (
    name: 'preHandler',
    hook: (request: { routeOptions: { handler: RouteFunction } }, reply: unknown) => Promise<unknown>,
  ) => void;
}
let results: unknown[] = [];

/** As caches and tracers do: calls the route function that Fastify hands out, and answers with what comes of it. */
@Module({})
class CallingModule implements NestModule {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
  configure(): void {
    const fastify = this.host.httpAdapter.getInstance<Hooked>();
    fastify.addHook('preHandler', async (request, reply) => {
      const result = request.routeOptions.handler.call(fastify, request, reply);
      results.push(result);
      await result;
      return reply;
    });
  }
}

afterEach(closeApps);

it.each([
  ['with the module', undefined],
  ['without it', null],
])('whoever calls a route function of Fastify gets a native promise, %s', async (_name, perf) => {
  const { url } = await listeningApp(adapterOf('fastify'), {
    metadata: { controllers: [AnswersController], imports: [CallingModule] },
    ...(perf === null ? { perf } : {}),
  });
  for (const path of ['async', 'sync', 'observable', 'decorated']) {
    results = [];
    expect(await (await fetch(`${url}/${path}`)).text(), path).toBe('done');
    expect(results, path).toHaveLength(1);
    const [result] = results as [Promise<unknown>];
    expect([path, types.isPromise(result), Object.getPrototypeOf(result) === Promise.prototype]).toEqual([
      path,
      true,
      true,
    ]);
    expect(Reflect.ownKeys(result), path).toEqual([]);
  }
});
