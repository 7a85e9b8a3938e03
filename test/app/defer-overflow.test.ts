import { Controller, Get, Post } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { DeferWork } from '../../src/index.js';
import { either } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

describe.each(either('express'))('overflow `reject` on %s', (adapter) => {
  it('answers 503 where work finds no room at the end of the handler, and takes requests again later', async () => {
    let handled = 0;
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    @Controller('jobs')
    class JobsController {
      @Post()
      @DeferWork(() => gate, { name: 'gated' })
      @DeferWork(() => gate, { name: 'gated' })
      create() {
        handled += 1;
        return {};
      }
    }
    const { url, deferrer } = await startDeferring(
      adapter,
      { controllers: [JobsController] },
      { overflow: 'reject', maxPending: 3, concurrency: 1 },
    );
    const post = async (): Promise<number> => (await fetch(`${url}/jobs`, { method: 'POST' })).status;
    expect(await post()).toBe(201);
    // One of its two runs, one waits; the next request takes the other two places.
    await until('the first to run', () => deferrer.stats().running === 1);
    expect(await post()).toBe(201);
    await until('three to wait', () => deferrer.stats().pending === 3);
    expect([await post(), await post()]).toEqual([503, 503]);
    expect(handled).toBe(4);
    release();
    await deferrer.idle();
    expect(await post()).toBe(201);
    await deferrer.idle();
    expect(deferrer.stats()).toMatchObject({ accepted: 6, completed: 6, dropped: 0 });
  });

  it('keeps nothing of a request whose second work finds no room', async () => {
    @Controller('jobs')
    class JobsController {
      @Get('two')
      @DeferWork(() => {})
      @DeferWork(() => {})
      two() {
        return {};
      }
      @Get('one')
      @DeferWork(() => {})
      one() {
        return {};
      }
    }
    const { url, deferrer } = await startDeferring(
      adapter,
      { controllers: [JobsController] },
      { overflow: 'reject', maxPending: 1 },
    );
    expect((await fetch(`${url}/jobs/two`)).status).toBe(503);
    expect((await fetch(`${url}/jobs/one`)).status).toBe(200);
    await deferrer.idle();
    expect(deferrer.stats()).toMatchObject({ accepted: 1, completed: 1 });
  });

  it('takes no room for work that the status forbids', async () => {
    @Controller('jobs')
    class JobsController {
      @Get()
      @DeferWork(() => {}, { when: 'error' })
      @DeferWork(() => {})
      fine() {
        return {};
      }
      @Get('bad')
      @DeferWork(() => {})
      @DeferWork(() => {}, { when: 'error' })
      bad(): never {
        throw new Error('bad');
      }
    }
    const { url, deferrer } = await startDeferring(
      adapter,
      { controllers: [JobsController] },
      { overflow: 'reject', maxPending: 2 },
    );
    for (let i = 0; i < 10; i++) {
      expect((await fetch(`${url}/jobs`)).status).toBe(200);
      expect((await fetch(`${url}/jobs/bad`)).status).toBe(500);
      await deferrer.idle();
    }
    expect(deferrer.stats()).toMatchObject({ accepted: 20, completed: 20 });
  });
});
