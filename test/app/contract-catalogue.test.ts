import type { Type } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Redis } from 'ioredis';
import { PerfModule } from 'nestjs-perf';
import { cache } from 'nestjs-perf/cache';
import { expectWork } from 'nestjs-perf/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CatalogueController } from '../../examples/cached-data/catalogue.controller.js';
import { Catalogue, Database } from '../../examples/cached-data/catalogue.js';
import { connection } from '../fixtures/redis.js';

/** The long form is the proof that a contract of counts never fails by chance. */
const runs = { repeats: process.env['PERF_LONG'] === undefined ? 0 : 199 };
const REDIS = `redis ${connection.host}:${connection.port}`;
let redis: Redis;
beforeAll(async () => {
  redis = new Redis(connection);
  for (let id = 0; id < 12; id++)
    await redis.set(`product:${id}`, JSON.stringify({ id: String(id), name: `Shoe ${id}`, brand: '0' }));
  await redis.hset('brands', { 0: 'Adidas' });
});
afterAll(() => redis.disconnect());

/** Somebody takes the batch away: each price is a query of its own. */
class PlantedCatalogue extends Catalogue {
  override async prices(ids: readonly string[]): Promise<readonly number[]> {
    const prices = await Promise.all(ids.map((id) => super.prices([id])));
    return prices.flat();
  }
}

async function check(catalogue: Type<Catalogue>): Promise<string> {
  @Module({
    imports: [PerfModule.forRoot({ sinks: [], extensions: [cache()] })],
    controllers: [CatalogueController],
    providers: [Database, { provide: Redis, useValue: redis }, { provide: Catalogue, useClass: catalogue }],
  })
  class ShopModule {}
  const app = await NestFactory.create(ShopModule, new FastifyAdapter(), { logger: false });
  const expected = { upstream: { [REDIS]: { atMost: 13, atLeast: 13 }, database: { atMost: 1, atLeast: 1 } } };
  try {
    await expectWork(app, { get: '/catalogue/0' }, { ...expected, bytes: { atMost: 2_000 }, deferred: [] });
    return 'it holds';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await app.close();
  }
}

it('a page of the catalogue example keeps its contract', runs, async () => {
  expect(await check(Catalogue)).toBe('it holds');
});

it('a planted N+1 breaks it, and the message names the target and its calls', runs, async () => {
  const message = await check(PlantedCatalogue);
  expect(message.split('\n')[0]).toBe('GET /catalogue/0: database 12 calls (expected exactly 1 call)');
  expect(message).toMatch(/^ {2}database {2,}exactly 1 call {2,}12 calls {3}<--$/m);
  expect(message).toMatch(new RegExp(`^ {2}${REDIS.replaceAll('.', '\\.')} {3}13 calls`, 'm'));
});
