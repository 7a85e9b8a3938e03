import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PerfService, type BlockRecord, type RequestRecord } from '../../src/index.js';
import { either } from '../fixtures/app.js';
import { BlocksApp } from '../fixtures/blocks-app.js';
import { RawClient } from '../fixtures/socket.js';

/** What Node itself says of each request's time: how long the loop waited for events meanwhile, and how long it ran. */
function accountsOf(server: Server): Map<string, { idleMs: number; activeMs: number }> {
  const accounts = new Map<string, { idleMs: number; activeMs: number }>();
  server.prependListener('request', ({ headers }: IncomingMessage, response: ServerResponse) => {
    const [idleBeforeMs, startedMs] = [performance.nodeTiming.idleTime, performance.now()];
    response.once('finish', () => {
      const idleMs = performance.nodeTiming.idleTime - idleBeforeMs;
      accounts.set(String(headers['x-request-id']), { idleMs, activeMs: performance.now() - startedMs - idleMs });
    });
  });
  return accounts;
}

/** Of a request's time: inside the blocks that name it as the culprit or as one that waited. */
function toldMs({ id, startedAt, durationMs }: RequestRecord, blocks: readonly BlockRecord[]): number {
  const endedAt = startedAt + durationMs;
  let sumMs = 0;
  for (const { startedAt: from, durationMs: blockMs, request, delayed } of blocks) {
    if (![request, ...delayed].some((ref) => ref?.id === id)) continue;
    sumMs += Math.max(0, Math.min(endedAt, from + blockMs) - Math.max(startedAt, from));
  }
  return sumMs;
}

describe.each(either('express'))('the records of event-loop blocks on %s', (adapter) => {
  let app: BlocksApp;
  beforeAll(async () => {
    app = await BlocksApp.start(adapter);
  });
  afterAll(() => app.close());

  it('tell duration, stack, who waited and a curl line', async () => {
    const isTold = ({ request, cause }: BlockRecord): boolean => request?.id === 'mine' && cause === 'javascript';
    const found = await app.untilBlocks(
      (all) => all.some(isTold),
      () =>
        Promise.all([
          app.load.get('/victim/60'),
          app.load.get('/victim/70'),
          app.load.get('/later/loop?ms=200&token=hunter2', { 'x-request-id': 'mine', accept: 'x/y' }),
        ]),
    );
    expect(found.map(({ request, cause }) => [request?.id, cause])).toContainEqual(['mine', 'javascript']);
    const block = found.find(isTold)!;
    expect(block.durationMs).toBeGreaterThan(190);
    expect(block.provenMs).toBeLessThanOrEqual(block.durationMs);
    expect(block.request).toMatchObject({
      method: 'GET',
      route: '/later/:kind',
      handler: 'BlockersController.later',
    });
    expect(block.location).toMatch(/^test\/fixtures\/blockers\.controller\.ts:\d+:\d+$/);
    expect(block.stack.some((line) => line.includes('spin'))).toBe(true);
    expect(block.method).toBe('BlockersController.later');
    expect(block.samples).toBeGreaterThan(5);
    expect(block.delayed.map(({ route }) => route)).toContain('/victim/:ms');
    expect(block.delayed.map(({ id }) => id)).not.toContain('mine');
    expect(block.curl).toContain(`/later/loop?ms=200&token=[redacted]' -H 'accept: x/y'`);
    expect(block.curl).toContain(`'http://127.0.0.1:${app.test.port}/later`);
  });

  it('do not tell of a client’s next requests, which were sent after the answer', async () => {
    const [client, other] = [await RawClient.open(app.test.port), await RawClient.open(app.test.port)];
    other.get('/quick');
    await other.until('HTTP/1.1 ');
    const block = await app.untilNamed('answered', async () => {
      client.received = '';
      client.get('/block/loop?ms=130', 'x-request-id: answered\r\n');
      await client.until('HTTP/1.1 ');
      other.received = '';
      for (const next of [client, other]) next.get('/quick');
      await client.until('HTTP/1.1 ', 2);
      await other.until('HTTP/1.1 ');
    });
    for (const one of [client, other]) one.leave();
    expect(block?.delayed).toEqual([]);
  }, 120_000);

  it('charge the culprit, the others and the route', async () => {
    // Alone: a block that the machine made beside it would delay the culprit too.
    const alone = (found: readonly BlockRecord[]): boolean => found.length === 1 && found[0]!.request?.id === 'culprit';
    const [block] = await app.untilBlocks(alone, async () => {
      const victim = app.load.get('/victim/30', { 'x-request-id': 'victim' });
      await app.load.get('/later/loop?ms=150', { 'x-request-id': 'culprit' });
      await victim;
    });
    const records = await app.test.requests();
    const culprit = records.find(({ id }) => id === 'culprit')!;
    const waited = records.find(({ id }) => id === 'victim')!;
    expect(block!.request?.id).toBe('culprit');
    expect(culprit.blockedMs).toBeCloseTo(block!.durationMs, -0.5);
    expect(culprit.delayedMs).toBe(0);
    expect(waited.blockedMs).toBe(0);
    expect(waited.delayedMs).toBeGreaterThan(100);
    const perf = app.test.app.get(PerfService);
    const route = perf.snapshot().routes.find((row) => row.route === '/later/:kind')!;
    expect(route.blockedMs).toBeGreaterThanOrEqual(culprit.blockedMs);
    const { eventLoop } = perf.snapshot();
    expect(eventLoop!.delayMs.max).toBeGreaterThan(100);
    expect(eventLoop!.blocks).toBeGreaterThan(0);
    expect(eventLoop!.blockedMs).toBeGreaterThan(100);
    expect(eventLoop!.utilization).toBeGreaterThan(0);
  });

  it('add up: waiting, own blocks, others’ blocks and what is below the threshold make a request’s time', async () => {
    const accounts = accountsOf(app.test.app.getHttpServer() as Server);
    let [checked, seen] = [0, 0];
    const of = (path: string, id = path) => app.load.get(path, { 'x-request-id': id });
    for (const path of ['/later/loop?ms=150', '/block/loop?ms=90', '/half/70', '/slices/12', '/victim/60']) {
      await app.forget();
      accounts.clear();
      const all = ['/victim/30', '/victim/120', '/innocent/3', '/slices/30', '/half/20'].map((other) => of(other));
      await app.waiting(1);
      all.push(of(path, 'mine'));
      if (path.startsWith('/half')) await app.waiting(2);
      await app.load.send({ method: 'POST', path: '/release' });
      await Promise.all(all);
      const told = await app.blocks();
      for (const record of (await app.test.requests()).filter(({ id }) => accounts.has(id))) {
        const { id, blockedMs, delayedMs, durationMs } = record;
        const { idleMs, activeMs } = accounts.get(id)!;
        seen += 1;
        // The machine took the CPU away between the two clocks, the test's and the library's.
        if (Math.abs(idleMs + activeMs - durationMs) > 1) continue;
        checked += 1;
        const otherMs = activeMs - toldMs(record, told);
        const parts = JSON.stringify({ path, id, idleMs, blockedMs, delayedMs, otherMs, durationMs });
        expect(Math.abs(idleMs + blockedMs + delayedMs + otherMs - durationMs), parts).toBeLessThanOrEqual(2);
        expect(otherMs, parts).toBeGreaterThanOrEqual(-2);
      }
    }
    expect(checked).toBeGreaterThan(seen / 2);
  }, 120_000);

  it('carry the size that the application reported', async () => {
    const block = await app.untilNamed('noted', () => app.load.get('/noted', { 'x-request-id': 'noted' }));
    expect(block?.note).toEqual({ rows: 9_000, bytes: 3_000_000 });
    expect((await app.test.requests()).find(({ id }) => id === 'noted')?.note).toEqual({
      rows: 9_000,
      bytes: 3_000_000,
    });
  });
});
