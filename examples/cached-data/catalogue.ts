import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { PerfService } from 'nestjs-perf';
import { Cached, Preloaded } from 'nestjs-perf/cache';

export interface Product {
  id: string;
  name: string;
  brand: string;
}

/** Stands in for a database: some milliseconds a query, and it can be away. */
@Injectable()
export class Database {
  static away = false;
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  prices(ids: readonly string[]): Promise<number[]> {
    return this.perf.timed('database', async () => {
      await delay(8 + 12 * Math.random());
      if (Database.away) throw new Error('The database is away');
      return ids.map((id) => 10 + (Number(id) % 90));
    });
  }
}

/** As it was: every request asks Redis and the database. */
@Injectable()
export class Catalogue {
  constructor(
    @Inject(Redis) private readonly redis: Redis,
    @Inject(Database) private readonly database: Database,
  ) {}

  async product(id: string): Promise<Product> {
    return JSON.parse((await this.redis.get(`product:${id}`)) ?? 'null') as Product;
  }

  prices(ids: readonly string[]): Promise<readonly number[]> {
    return this.database.prices(ids);
  }

  brands(): Promise<Record<string, string>> {
    return this.redis.hgetall('brands');
  }
}

/** The catalogue again, with caches in front of it. */
@Injectable()
export class CachedCatalogue extends Catalogue {
  @Cached({ ttlMs: 60_000, staleMs: 600_000 })
  override product(id: string): Promise<Product> {
    return super.product(id);
  }

  @Cached({ ttlMs: 1_000, staleMs: 600_000, batch: true })
  override prices(ids: readonly string[]): Promise<readonly number[]> {
    return super.prices(ids);
  }

  @Preloaded({ everyMs: 30_000 })
  override brands(): Promise<Record<string, string>> {
    return super.brands();
  }
}
