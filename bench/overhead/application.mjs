// The one small API that every variant serves: GET /users/:id, a hundred bytes of JSON, Nest on Fastify or Express.
import { Controller, Get, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { serveOn } from '../harness/index.mjs';

export const ROUTE = '/users/:id';
export const makeUser = (id) => ({ id, name: 'Ada Lovelace', email: 'ada@example.org', roles: ['reader', 'writer'] });

/** Decorators by hand, so that the servers run as they are, on any Node. */
export function decorate(target, ...decorators) {
  for (const decorator of decorators.toReversed()) decorator(target);
}
export function decorateMethod({ prototype }, name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  for (const decorator of decorators.toReversed()) decorator(prototype, name, descriptor);
  Object.defineProperty(prototype, name, descriptor);
}

class UsersController {
  findOne(id) {
    return makeUser(id);
  }
}
decorateMethod(UsersController, 'findOne', Get(':id'));
Param('id')(UsersController.prototype, 'findOne', 0);
decorate(UsersController, Controller('users'));

/** Starts a Nest application from its root module's metadata; resolves with it when it listens on a free port. */
export async function serveNest(metadata, { express = false, main = async () => {} } = {}) {
  const root = { module: class AppModule {}, ...metadata };
  const adapter = express ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(root, adapter, { logger: ['error', 'warn'] });
  await main(app);
  // As Fastify's: Node's 5 s close the connections of a server that waits for its turn.
  app.getHttpServer().keepAliveTimeout = 72_000;
  await app.listen(0, '127.0.0.1');
  return app;
}
export const readPort = (app) => app.getHttpServer().address().port;

/** Starts the API with what the variant adds: module imports and providers, and a last look at the application. */
export async function serveApi({ express = false, imports = [], providers = [], check = () => {} } = {}) {
  const app = await serveNest({ imports, providers, controllers: [UsersController] }, { express });
  check(app);
  serveOn(readPort(app));
}
