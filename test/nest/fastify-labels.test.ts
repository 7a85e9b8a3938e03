import { Body, Controller, Get, Inject, Injectable, type OnModuleInit, Post } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { expect, it } from 'vitest';
import { startApp } from '../fixtures/app.js';

@Controller('orders')
class OrdersController {
  @Get(':id')
  find() {
    return {};
  }

  @Post(':id')
  change(@Body() body: object) {
    return body;
  }
}

/** As a plugin for authentication does: it answers before any hook of a route's own. */
@Injectable()
class Login implements OnModuleInit {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  onModuleInit(): void {
    this.host.httpAdapter.getInstance<FastifyInstance>().addHook('onRequest', (request, reply, done) => {
      if (request.headers['x-login'] === 'none') void reply.code(401).send({ login: true });
      else done();
    });
  }
}

it('what Fastify answers before the handler of a route, a hook or the body parser, is a request of that route', async () => {
  const running = await startApp('fastify', { metadata: { controllers: [OrdersController], providers: [Login] } });
  const json = { 'content-type': 'application/json' };
  const requests: [string, RequestInit][] = [
    ['orders/1', {}],
    ['orders/2', { headers: { 'x-login': 'none' } }],
    ['orders/3', { method: 'HEAD', headers: { 'x-login': 'none' } }],
    ['orders/4', { method: 'POST', body: '{', headers: json }],
    ['orders', { headers: { 'x-login': 'none' } }],
  ];
  for (const [path, init] of requests) await (await fetch(`${running.url}/${path}`, init)).text();
  const records = await running.requests();
  await running.close();
  expect(records.map(({ method, route, handler, status }) => [method, route, handler, status])).toEqual([
    ['GET', '/orders/:id', 'OrdersController.find', 200],
    ['GET', '/orders/:id', 'OrdersController.find', 401],
    ['HEAD', '/orders/:id', 'OrdersController.find', 401],
    ['POST', '/orders/:id', 'OrdersController.change', 400],
    ['GET', '', null, 401],
  ]);
});
