// One process of the cache benchmark: a thousand small objects, each of them cached, asked for over and over. Prints a line of
// JSON for each round: CPU microseconds a hit, by variant.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';
import { cache, Cached, PerfCache } from 'nestjs-perf/cache';

const [rounds, burst] = process.argv.slice(2).map(Number);
const peers = createRequire(new URL('../peers/package.json', import.meta.url));
const TTL_MS = 3_600_000;
const ids = Array.from({ length: 1_000 }, (_, i) => `product-${i}`);
const load = async (id) => ({ id, name: 'Shoe', price: 3 });

class Catalogue {
  product(id) {
    return load(id);
  }
}
const descriptor = Object.getOwnPropertyDescriptor(Catalogue.prototype, 'product');
Cached({ ttlMs: TTL_MS })(Catalogue.prototype, 'product', descriptor);
Object.defineProperty(Catalogue.prototype, 'product', descriptor);
class AppModule {}
const extensions = [cache()];
Module({ imports: [PerfModule.forRoot({ sinks: [], extensions })], providers: [Catalogue] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const catalogue = app.get(Catalogue);

const kept = new Map(await Promise.all(ids.map(async (id) => [id, Promise.resolve(await load(id))])));
const memoized = peers('memoizee')(load, { promise: true, primitive: true, maxAge: TTL_MS, max: 10_000 });
const managed = peers('cache-manager').createCache({ ttl: TTL_MS });
const { Cacheable } = peers('cacheable');
const cacheable = new Cacheable({ ttl: TTL_MS });
const wrapped = cacheable.wrap(load, { ttl: TTL_MS, keyPrefix: 'product' });
const deduped = peers('async-cache-dedupe').createCache({ ttl: TTL_MS / 1_000, storage: { type: 'memory' } });
deduped.define('product', load);

const variants = {
  'a promise that is kept': (id) => kept.get(id),
  'a promise that is kept, again': (id) => kept.get(id),
  '@Cached()': (id) => catalogue.product(id),
  memoizee: memoized,
  'async-cache-dedupe': (id) => deduped.product(id),
  'cache-manager `wrap`': (id) => managed.wrap(id, () => load(id)),
  'cacheable `wrap`': (id) => wrapped(id),
};

async function usPerHit(get, count) {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) {
    const found = await get(ids[i % ids.length]);
    if (found.price !== 3) throw new Error('Not what was loaded.');
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

for (const get of Object.values(variants)) await usPerHit(get, burst);
for (let round = 0; round < rounds; round++) {
  const row = {};
  for (const [name, get] of Object.entries(variants)) row[name] = await usPerHit(get, burst);
  console.log(JSON.stringify(row));
}
const [{ hits, misses }] = app.get(PerfCache).stats();
if (hits < rounds * burst || misses !== ids.length)
  throw new Error(`${hits} hits and ${misses} misses: this was no cache.`);
await app.close();
process.exit();
