import { Controller, Get, Query } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { PerfService, SharedResponse, type PerfModuleOptions } from '../../src/index.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
import { textOf } from '../fixtures/compression.controller.js';
import { callAccepting } from '../fixtures/http-client.js';

@Controller()
class FeedController {
  @Get('feed')
  @SharedResponse({ ttlMs: 600_000 })
  feed(@Query('n') n: string): unknown {
    return { n, text: textOf(20_000) };
  }
}

const MIB = 1024 * 1024;
const limit = (memoryLimitBytes: number, share?: number): PerfModuleOptions => ({
  resources: { memoryLimitBytes },
  ...(share === undefined ? {} : { memory: { share } }),
});

let test: TestApp | null = null;
afterEach(() => test?.close());

it.each([
  ["a third of a tenth of the container's limit", limit(30 * MIB), MIB],
  ['a third of the share', limit(60 * MIB, 0.05), MIB],
  ['no more than its own `maxBytes`', { ...limit(900 * MIB), compression: { cache: { maxBytes: MIB } } }, MIB],
] as const)('encoded bodies hold %s', async (_what, perf, most) => {
  test = await startApp(adapters[0], { perf, metadata: { controllers: [FeedController] } });
  for (let n = 0; n < 100; n++) {
    const { text } = await callAccepting(`${test.url}/feed?n=${n}`, 'gzip');
    expect(JSON.parse(text)).toMatchObject({ n: String(n) });
  }
  const { cacheBytes } = test.app.get(PerfService).snapshot().compression!;
  expect(cacheBytes).toBeLessThanOrEqual(most);
  expect(cacheBytes).toBeGreaterThan(most / 2);
});

it.each([
  [0, 'got `0` (number)'],
  [1.5, 'got `1.5` (number)'],
  ['10%', '(string)'],
])('a share of %j stops the boot', async (share, message) => {
  test = null;
  const perf = { memory: { share: share as number } };
  await expect(startApp(adapters[0], { perf })).rejects.toThrow(/PERF_ERR_OPTION: `memory\.share` must be/);
  await expect(startApp(adapters[0], { perf })).rejects.toThrow(message);
});
