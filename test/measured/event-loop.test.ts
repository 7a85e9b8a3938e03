import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlockRecord } from '../../src/index.js';
import { BlockersController } from '../fixtures/blockers.controller.js';
import { either } from '../fixtures/app.js';
import { BlocksApp, INNOCENTS } from '../fixtures/blocks-app.js';
import { until } from '../fixtures/until.js';

describe.each(either('fastify'))('event-loop blocks on %s', (adapter) => {
  let app: BlocksApp;
  beforeAll(async () => {
    app = await BlocksApp.start(adapter);
  });
  afterAll(() => app.close());

  it('name the request whose handler runs on after an await that is over at once', async () => {
    app.load.loop(INNOCENTS);
    const block = await app.untilNamed('soon', () => app.load.get('/soon/loop?ms=130', { 'x-request-id': 'soon' }));
    await app.load.stopLoops();
    expect(block?.request).toMatchObject({ route: '/soon/:kind' });
  }, 120_000);

  it('name the request that formats the stack of an error, though no stack can be read meanwhile', async () => {
    const block = await app.untilNamed('format', () => app.load.get('/block/format', { 'x-request-id': 'format' }));
    expect(block).toMatchObject({ request: { route: '/block/:kind' }, location: null, stack: [] });
  }, 120_000);

  it('of the serialisation of a response are its request’s', async () => {
    const isTold = ({ request, suspect }: BlockRecord): boolean => (request ?? suspect)?.id === 'big';
    const found = await app.untilBlocks(
      (all) => all.some(isTold),
      () => app.load.get('/big/40', { 'x-request-id': 'big' }),
    );
    for (const block of found) expect(block.request?.route ?? '/big/:times').toBe('/big/:times');
    expect(found.some(isTold)).toBe(true);
  });

  it('made of many short pieces are nobody’s', async () => {
    const pileUp = async (): Promise<void> => {
      const pile = Array.from({ length: 40 }, (_, n) => app.load.get(`/pile/${n}`));
      await app.waiting(40);
      await app.forget();
      await app.load.send({ method: 'POST', path: '/release' });
      await Promise.all(pile);
    };
    // Where the machine let no sample be taken, nobody is counted as waiting.
    const isTold = (found: readonly BlockRecord[]): boolean => found.some(({ delayed }) => delayed.length >= 20);
    const found = await app.untilBlocks(isTold, pileUp);
    for (const { request } of found) expect(request).toBeNull();
    const told = found.filter(({ delayed }) => delayed.length >= 20);
    expect(told).not.toEqual([]);
    expect(['pile-up', 'not-scheduled', 'gc']).toEqual(expect.arrayContaining(told.map(({ cause }) => cause)));
  }, 120_000);

  it('made of two requests’ pieces are those of the one that ran for half of it, and of nobody else', async () => {
    /** Two requests held the loop one after the other: how long each, by its own clock, and what was recorded. */
    const pair = async (first: number, second: number): Promise<BlockRecord[]> => {
      const both = [app.load.get(`/half/${first}`, { 'x-request-id': 'first' })];
      await app.waiting(1);
      both.push(app.load.get(`/half/${second}`, { 'x-request-id': 'second' }));
      await app.waiting(2);
      await app.forget();
      await app.load.send({ method: 'POST', path: '/release' });
      const tookMs = (await Promise.all(both)).map(({ text }) => (JSON.parse(text) as { tookMs: number }).tookMs);
      const found = await app.blocks();
      for (const { request, durationMs } of found) {
        if (request === null) continue;
        expect(['first', 'second']).toContain(request.id);
        // The machine may have made a half longer.
        expect(tookMs[request.id === 'first' ? 0 : 1]).toBeGreaterThan(0.45 * durationMs);
      }
      return found;
    };
    const untilNamed = async (id: string, ...ms: [number, number]): Promise<void> => {
      for (let named = false; !named;) named = (await pair(...ms)).some(({ request }) => request?.id === id);
    };
    await pair(60, 60);
    await untilNamed('first', 150, 5);
    await untilNamed('second', 5, 150);
  }, 120_000);

  it('of a timer outside of requests are nobody’s, and have their line and those who waited', async () => {
    const background = setInterval(() => {
      const end = performance.now() + armedMs;
      armedMs = 0;
      while (performance.now() < end);
    }, 5);
    let [askedMs, armedMs] = [0, 0];
    BlockersController.background = (ms) => (askedMs = ms);
    const isTold = (found: readonly BlockRecord[]): boolean => {
      for (const { request, suspect } of found) expect([request, suspect]).toEqual([null, null]);
      return found.some(({ location }) => location?.startsWith('test/measured/event-loop.test.ts:'));
    };
    const found = await app.untilBlocks(isTold, async () => {
      const victim = app.load.get('/victim/60');
      await app.load.send({
        method: 'POST',
        path: '/background',
        headers: { 'content-type': 'application/json' },
        body: '{"ms":150}',
      });
      // Once it is answered: while it is under way, it may be the one.
      armedMs = askedMs;
      await victim;
      await until('the timer has run', () => armedMs === 0);
    });
    clearInterval(background);
    expect(isTold(found)).toBe(true);
  });

  it.each(['timer', 'interceptor'])(
    'in its own %s are the request’s',
    async (place) => {
      const block = await app.untilNamed(place, () => app.load.get(`/later-in-${place}`, { 'x-request-id': place }));
      expect(block?.request?.id).toBe(place);
    },
    120_000,
  );

  it.each(['/forgets', '/answered'])('after a request’s response are nobody’s: %s', async (path) => {
    await app.forget();
    await app.load.get(path);
    await until('a block', async () => (await app.blocks()).length > 0);
    for (const { request, suspect } of await app.blocks()) expect([request, suspect]).toEqual([null, null]);
  });

  it('of a request that its client has left are nobody’s, with their line and method', async () => {
    const isTold = ({ request, suspect, method }: BlockRecord): boolean =>
      request === null && suspect === null && method === 'BlockersController.afterClose';
    const found = await app.untilBlocks(
      (all) => all.some(isTold),
      async () => {
        const socket = connect(app.test.port, '127.0.0.1').on('error', () => {});
        const asked = once(app.test.app.getHttpServer() as Server, 'request');
        socket.write('GET /left HTTP/1.1\r\nHost: x\r\n\r\n');
        await asked;
        socket.destroy();
        await until('a block', async () => (await app.blocks()).length > 0);
      },
    );
    expect(found.some(isTold)).toBe(true);
  }, 120_000);
});
