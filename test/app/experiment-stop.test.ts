import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { Experiment, Experiments, type GateClient, Variant } from '../../src/index.js';
import { either, startApp } from '../fixtures/app.js';

/** Every second request; anonymous requests are units of their own. */
function everySecond(): GateClient {
  let asked = 0;
  return { check: () => ({ on: (asked += 1) % 2 === 0 }) };
}

@Controller()
class ShopController {
  @Get('list')
  @Experiment('risky')
  list(@Variant('risky') variant: string) {
    if (variant === 'on') throw new Error('on purpose');
    return { variant };
  }
}

describe.each(either('fastify'))('experiments.stop on %s', (adapter) => {
  it('answers a gate off that fails too often, says so once with the reason, and takes it back', async () => {
    const warnings: string[] = [];
    const logger = { log: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) };
    const { app, url, requests, close } = await startApp(adapter, {
      metadata: { controllers: [ShopController] },
      perf: { experiments: { gates: everySecond(), stop: { errors: '+0.5 %' } }, latency: { slowMs: 60_000 } },
      nest: { logger },
    });
    const visit = async (): Promise<number> => {
      const { status, body } = await fetch(`${url}/list`);
      await body?.cancel();
      return status;
    };
    const stopped = (): string[] => warnings.filter((line) => line.includes('is stopped'));
    await expect
      .poll(
        async () => {
          for (let i = 0; i < 200; i++) await visit();
          return stopped().length;
        },
        { timeout: 50_000 },
      )
      .toBe(1);
    expect(stopped()[0]).toMatch(
      /^Gate `risky` is stopped: [\d.]+ % of requests fail, 0 % when off, on GET \/list, beyond the limit of \+0\.5 %\. It is "off" until `experiments\.resume\('risky'\)` or a restart\.$/,
    );
    expect([await visit(), await visit(), await visit()]).toEqual([200, 200, 200]);
    const experiments = app.get(Experiments);
    expect(experiments.report('risky').caveats[0]).toMatch(/^The gate is stopped: /);
    expect((await requests()).at(-1)!.variants).toEqual({ risky: 'off' });
    expect([experiments.resume('risky'), experiments.resume('risky')]).toEqual([true, false]);
    expect(await Promise.all([visit(), visit()])).toContain(500);
    await close();
    expect(stopped()).toHaveLength(1);
  });
});
