import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PerfService, SlowMs, type PerfModuleOptions } from '../../src/index.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';

@Controller()
class FastController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  @Get('health')
  @SlowMs(50)
  health() {
    return this.perf.timed('postgres shop', () => delay(5));
  }

  @Get('live')
  @SlowMs(50)
  live() {
    return {};
  }

  @Get('orders')
  @SlowMs(2_000)
  orders() {
    return this.perf.timed('postgres shop', () => delay(5));
  }
}

describe.each(adapters)('findings, on %s', (adapter) => {
  let running: TestApp;
  const start = async (perf: PerfModuleOptions = {}): Promise<void> => {
    running = await startApp(adapter, { perf, metadata: { controllers: [FastController] } });
  };
  const findings = () => running.app.get(PerfService).snapshot().findings;
  afterEach(async () => {
    await running.close();
    vi.useRealTimers();
  });

  it('name a route that is meant to be fast, and calls somebody', async () => {
    await start();
    for (let i = 0; i < 6; i++) {
      for (const path of ['health', 'live', 'orders']) await (await fetch(`${running.url}/${path}`)).text();
    }
    await running.requests();
    expect(findings()).toEqual([
      {
        kind: 'call-on-fast-route',
        route: 'GET /health',
        text: expect.stringMatching(
          /^GET \/health is to answer within 50 ms, and calls postgres shop for \d+(\.\d)? ms a request$/,
        ) as string,
      },
    ]);
  });

  it('name an upstream whose calls have become slower', async () => {
    // The minutes of this test are as long as it says; everything else takes its time.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await start({ eventLoop: false, resources: false });
    const perf = running.app.get(PerfService);
    const tenSeconds = async (waitMs: number): Promise<void> => {
      await Promise.all(Array.from({ length: 10 }, () => perf.timed('postgres shop', () => delay(waitMs))));
      vi.advanceTimersByTime(10_000);
    };
    for (let window = 0; window < 18; window++) await tenSeconds(1);
    expect(findings()).toEqual([]);
    for (let window = 0; window < 6; window++) await tenSeconds(200);
    expect(findings()).toEqual([
      {
        kind: 'slower-upstream',
        route: null,
        text: expect.stringMatching(
          /^calls to postgres shop took \d+ ms in the last minute, and \d+(\.\d)? ms before$/,
        ) as string,
      },
    ]);
  });
});
