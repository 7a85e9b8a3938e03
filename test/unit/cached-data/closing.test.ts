import { Injectable } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import { Deferrer } from '../../../src/index.js';
import { cacheOf, closeCaches } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

afterEach(closeCaches);

let asked = 0;

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 60_000, timeoutMs: 300 })
  hung(): Promise<string> {
    asked += 1;
    return new Promise(() => {});
  }
}

it('deferred work that waits for a load while the application closes waits for no longer than `timeoutMs`', async () => {
  const { app, of } = await cacheOf(Catalogue, {}, {}, { defer: { drainTimeoutMs: 5_000 } });
  let ended: unknown = 'lost';
  app.get(Deferrer).defer(async () => {
    await of.hung().catch((error: { code: string }) => (ended = error.code));
  });
  await until('the load', () => asked === 1);
  await app.close();
  expect(ended).toBe('PERF_ERR_LOAD_TIMEOUT');
});
