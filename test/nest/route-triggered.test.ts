import { Controller, Get, Param, Post, RequestMethod } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService, SkipPerf } from '../../src/index.js';
import { byNest, startApp, type TestApp } from '../fixtures/app.js';

@Controller('users')
class UsersController {
  @Get(':id')
  findOne(@Param('id') id: string) {
    return { id };
  }
  @Post()
  create() {
    return {};
  }
  @Get('live/now')
  @SkipPerf()
  live() {
    return 'ok';
  }
}

interface HookedAdapter {
  setOnRouteTriggered(hook: (method: RequestMethod, path: string) => void): void;
  get: unknown;
  getOnRouteTriggered: unknown;
}

describe.each(byNest('fastify'))('beside a tool that asks to hear of triggered routes, on %s', (adapter) => {
  let test: TestApp;
  afterEach(() => test.close());

  it('routes keep their handler and their metadata, and the tool hears of each', async () => {
    const heard: string[] = [];
    test = await startApp(adapter, {
      metadata: { controllers: [UsersController] },
      beforeInit: (app) => {
        const http = app.getHttpAdapter() as unknown as HookedAdapter;
        http.setOnRouteTriggered((method, path) => heard.push(`${RequestMethod[method]} ${path}`));
      },
    });
    expect((await fetch(`${test.url}/users/7`)).status).toBe(200);
    expect((await fetch(`${test.url}/users`, { method: 'POST' })).status).toBe(201);
    expect((await fetch(`${test.url}/users/live/now`)).status).toBe(200);
    expect((await test.requests()).map(({ route, handler }) => [route, handler])).toEqual([
      ['/users/:id', 'UsersController.findOne'],
      ['/users', 'UsersController.create'],
    ]);
    expect(heard).toEqual(['GET /users/:id', 'POST /users', 'GET /users/live/now']);
    expect(test.app.get(PerfService).snapshot().routes).toHaveLength(2);
    // The adapter has the methods of its class again.
    const http = test.app.getHttpAdapter() as unknown as HookedAdapter;
    const { get, getOnRouteTriggered } = Object.getPrototypeOf(http) as HookedAdapter;
    expect(http.get).toBe(get);
    expect(http.getOnRouteTriggered).toBe(getOnRouteTriggered);
    expect(Object.keys(http)).not.toContain('get');
  });
});
