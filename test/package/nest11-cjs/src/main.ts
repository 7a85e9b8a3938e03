// What a user of Nest 12 writes: one import of the module, injection by class, the same on both adapters.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory, type AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfModule, PerfService, type PerfModuleOptions, type PerfRecord, type PerfSnapshot } from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';

@Controller('users')
class UsersController {
  constructor(private readonly perf: PerfService) {}

  @Get(':id')
  findOne(@Param('id') id: string): { id: string; seen: number } {
    return { id, seen: this.perf.snapshot().routes.length };
  }
}

async function serve(adapter: AbstractHttpAdapter): Promise<void> {
  const sink = memorySink();
  const options: PerfModuleOptions = { latency: { slowMs: 500 }, sinks: [sink] };

  @Module({ imports: [PerfModule.forRoot(options)], controllers: [UsersController] })
  class AppModule {}

  const app = await NestFactory.create(AppModule, adapter, { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  const response = await fetch(`${await app.getUrl()}/users/7`);
  assert.equal(response.status, 200);
  await settle(app);

  const snapshot: PerfSnapshot = app.get(PerfService).snapshot();
  const row = snapshot.routes.find(({ route }) => route === '/users/:id');
  assert.equal(row?.count, 1);
  assert.equal(row?.handler, 'UsersController.findOne');
  const kinds: PerfRecord['kind'][] = sink.records.map(({ kind }) => kind);
  assert.ok(kinds.includes('request'), `no request record among ${kinds.join()}`);
  await app.close();
}

async function main(): Promise<void> {
  await serve(new FastifyAdapter());
  await serve(new ExpressAdapter());
}

void main();
