import { Controller, Get } from '@nestjs/common';
import { afterEach, expect, it, vi } from 'vitest';
import type { HistoryStore } from '../../src/index.js';
import { startApp } from '../fixtures/app.js';

@Controller('items')
class ItemsController {
  @Get()
  items() {
    return [];
  }
}

const MINUTE_MS = 60_000;

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it.each([
  ['stands still in the last millisecond of a minute', 28_000_000 * MINUTE_MS - 1],
  ['stands still before 1970', -1],
  ['is broken', NaN],
])('while the wall clock %s, history looks twenty times a second at most', async (_clock, nowMs) => {
  let writes = 0;
  const store: HistoryStore = {
    name: 'counting',
    shared: false,
    open: async () => ({
      write: async () => void (writes += 1),
      async *read() {},
      close: async () => {},
    }),
  };
  // Timers that the boot sets are moved by hand; requests go over real sockets.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(Date, 'now').mockReturnValue(nowMs);
  const test = await startApp('fastify', {
    perf: { eventLoop: false, history: { store } },
    metadata: { controllers: [ItemsController] },
  });
  for (let second = 0; second < 60; second++) {
    vi.advanceTimersByTime(1_000);
    // What a look has written is over when the next one may come.
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  }
  expect((await fetch(`${test.url}/items`)).status).toBe(200);
  vi.useRealTimers();
  vi.restoreAllMocks();
  await test.close();
  // And once when the application closes.
  expect(writes).toBeGreaterThanOrEqual(1);
  expect(writes).toBeLessThanOrEqual(60 * 20 + 1);
});
