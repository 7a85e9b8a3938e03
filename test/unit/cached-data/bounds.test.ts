import { Injectable } from '@nestjs/common';
import * as fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';

const TTL_MS = 1_000;
const STALE_MS = 3_000;
const TIMEOUT_MS = 2_500;
/** With what a load may take, and still be kept. */
const LONGEST_LOAD_MS = 4_000;

let takesMs = 0;
let fails = false;

@Injectable()
class Source {
  @Cached({ ttlMs: TTL_MS, staleMs: STALE_MS, timeoutMs: TIMEOUT_MS })
  async value(_key: string) {
    const startedMs = performance.now();
    const willFail = fails;
    await new Promise((resolve) => setTimeout(resolve, takesMs));
    if (willFail) throw new Error('no');
    return { startedMs };
  }
}

afterEach(closeCaches);

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('ask' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 1_500 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), fails: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('take' as const), ms: fc.integer({ min: 0, max: LONGEST_LOAD_MS }) }),
  },
);

it('whatever happens, nothing is served that is older than its bound or an invalidation', async () => {
  const { of, cache } = await cacheOf(Source);
  const pass = fakeTime();
  let runs = 0;
  const scenario = async (steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): Promise<void> => {
    const key = `key ${(runs += 1)}`;
    [takesMs, fails] = [0, false];
    let forgottenMs = -Infinity;
    const answers: Promise<unknown>[] = [];
    for (const each of steps) {
      if (each.do === 'wait') await pass(each.ms);
      else if (each.do === 'fail') ({ fails } = each);
      else if (each.do === 'take') takesMs = each.ms;
      else if (each.do === 'forget') {
        // What the same instant has loaded would be as old.
        await pass(1);
        cache.invalidate(Source, 'value', key);
        forgottenMs = performance.now();
        await pass(1);
      } else {
        const [askedMs, notBeforeMs] = [performance.now(), forgottenMs];
        const check = async (): Promise<void> => {
          const { startedMs } = await of.value(key);
          const waitedMs = performance.now() - askedMs;
          expect(startedMs).toBeGreaterThanOrEqual(notBeforeMs);
          expect(askedMs - startedMs).toBeLessThan(TTL_MS + STALE_MS);
          expect(waitedMs).toBeLessThanOrEqual(TIMEOUT_MS);
        };
        answers.push(
          check().catch((error: unknown) => {
            // An error of the source, or of a late load, is an answer too.
            if (!/^no$|PERF_ERR_LOAD_TIMEOUT/.test((error as Error).message)) throw error;
          }),
        );
        await pass(0);
      }
    }
    await pass(LONGEST_LOAD_MS * 2);
    await Promise.all(answers);
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), scenario), { numRuns: 150 });
});
