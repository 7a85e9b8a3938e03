import { createHook } from 'node:async_hooks';
import { Controller, Get } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlockRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { startApp, type TestApp } from '../fixtures/app.js';
import { Load } from '../fixtures/load.js';

let blocking = false;
/** Promises that were made while nothing ran but a loop that makes none. */
let madeInside = 0;
let release: () => void;

@Controller()
class HookedController {
  /** In flight during the blocks: a look that begins to wait for it makes a promise. */
  @Get('waits')
  waits(): Promise<{ done: boolean }> {
    return new Promise((resolve) => (release = () => resolve({ done: true })));
  }
  @Get('block')
  block(): { done: boolean } {
    blocking = true;
    const endMs = performance.now() + 150;
    while (performance.now() < endMs);
    blocking = false;
    return { done: true };
  }
}

describe('an application that hears of each promise (Fastify, requests told apart by the stack)', () => {
  const hook = createHook({
    init() {
      if (blocking) madeInside += 1;
    },
  });
  let test: TestApp;
  let load: Load;
  beforeAll(async () => {
    hook.enable();
    test = await startApp('fastify', { perf: { context: false }, metadata: { controllers: [HookedController] } });
    load = await Load.start(test.port);
  });
  afterAll(async () => {
    await load.close();
    await test.close();
    hook.disable();
  });

  it('hears of none inside a look, and its blocks are traced', async () => {
    const isNamed = (found: readonly unknown[]): boolean =>
      (found as BlockRecord[]).some(({ kind, request }) => kind === 'block' && request?.url === '/block');
    const waiting = load.get('/waits');
    const deadlineMs = performance.now() + 30_000;
    // The watchdog boots with the first request, and the machine may starve a block.
    while (!isNamed(test.sink.records) && performance.now() < deadlineMs) {
      await load.get('/block');
      await settle(test.app);
    }
    release();
    await waiting;
    expect(isNamed(test.sink.records)).toBe(true);
    expect(madeInside).toBe(0);
  }, 60_000);
});
