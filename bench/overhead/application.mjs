// The one small API that every variant serves: GET /users/:id, a hundred bytes of JSON, Nest on Fastify or Express.
import { Controller, Get, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { serveOn } from '../harness/index.mjs';

export const ROUTE = '/users/:id';
export const userOf = (id) => ({ id, name: 'Ada Lovelace', email: 'ada@example.org', roles: ['reader', 'writer'] });

/** Decorators by hand, so that the servers run as they are, on any Node. */
export function decorate(target, ...decorators) {
  for (const decorator of decorators.reverse()) decorator(target);
  return target;
}
export function decorateMethod(controller, name, ...decorators) {
  const { prototype } = controller;
  for (const decorator of decorators.reverse()) {
    decorator(prototype, name, Object.getOwnPropertyDescriptor(prototype, name));
  }
}

export class UsersController {
  findOne(id) {
    return userOf(id);
  }
}
decorateMethod(UsersController, 'findOne', Get(':id'));
Param('id')(UsersController.prototype, 'findOne', 0);
decorate(UsersController, Controller('users'));

/**
 * Starts the API with what the variant adds: module imports and providers, a last look at the listening application, and
 * answers to further questions of the benchmark.
 */
export async function serveApi({
  express = false,
  imports = [],
  providers = [],
  check = () => {},
  handlers = {},
} = {}) {
  const root = { module: function AppModule() {}, imports, providers, controllers: [UsersController] };
  const adapter = express ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(root, adapter, { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  check(app);
  serveOn(app.getHttpServer().address().port, handlers);
}
