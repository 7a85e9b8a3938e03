// One shop, in a process of its own: `plain <redis>` or `cached <redis>`. Sends its URL, and when it is told what to do next, what
// it has asked of others so far.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Redis } from 'ioredis';
import { PerfModule, PerfService } from 'nestjs-perf';
import { cache } from 'nestjs-perf/cache';
import { CatalogueController } from './catalogue.controller.js';
import { CachedCatalogue, Catalogue, Database } from './catalogue.js';

const [kind, redisUrl] = process.argv.slice(2) as [string, string];

const redis = new Redis(redisUrl);

@Module({
  imports: [PerfModule.forRoot({ sinks: [], extensions: [cache()] })],
  controllers: [CatalogueController],
  providers: [
    Database,
    { provide: Redis, useValue: redis },
    { provide: Catalogue, useClass: kind === 'cached' ? CachedCatalogue : Catalogue },
  ],
})
class ShopModule {}

const app = await NestFactory.create(ShopModule, new FastifyAdapter(), { logger: false });
await app.listen(0, '127.0.0.1');

/** Calls of Redis and of the database by each request. */
function callsPerRequest(): { redis: number; database: number } {
  const { routes, upstream } = app.get(PerfService).snapshot();
  const requests = routes.reduce((sum, { count }) => sum + count, 0);
  const of = (name: string): number =>
    upstream.reduce((sum, { target, calls }) => sum + (target.startsWith(name) ? calls : 0), 0) / requests;
  return { redis: of('redis'), database: of('database') };
}

process.on('message', (told) => {
  Database.away = true;
  process.send?.(callsPerRequest());
  if (told !== 'close') return;
  redis.disconnect();
  void app.close().then(() => process.disconnect());
});
process.send?.(await app.getUrl());
