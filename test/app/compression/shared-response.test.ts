import * as http from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PerfService } from '../../../src/index.js';
import { settle } from '../../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';
import { feed, FeedController, ScopedController, TenantController } from '../../fixtures/shared-feed.js';

const realNow = performance.now.bind(performance);
/** Moves the process's clock on. */
function later(ms: number): void {
  vi.spyOn(performance, 'now').mockImplementation(() => realNow() + ms);
}

describe.each(adapters)('@SharedResponse on %s', (adapter) => {
  let test: TestApp;
  const start = async (beforeInit?: (app: INestApplication) => void): Promise<void> => {
    Object.assign(feed, { handler: 0, interceptor: 0, guard: 0, hold: null, fails: false });
    const controllers = [FeedController, ScopedController, TenantController];
    test = await startApp(adapter, { metadata: { controllers }, ...(beforeInit ? { beforeInit } : {}) });
  };
  afterEach(async () => {
    vi.restoreAllMocks();
    await test.close();
  });
  const get = (path: string, headers: Record<string, string> = {}) =>
    callAccepting(`${test.url}/${path}`, 'br', { headers });

  it('runs handler, interceptors and compression once for 50 callers, guards for each', async () => {
    await start();
    let release!: () => void;
    feed.hold = new Promise((resolve) => (release = resolve));
    const calls = Array.from({ length: 50 }, () => get('s/feed'));
    await expect.poll(() => feed.guard).toBe(50);
    release();
    const responses = await Promise.all(calls);
    expect(feed).toMatchObject({ handler: 1, interceptor: 1, guard: 50 });
    const wanted = JSON.stringify({ data: { version: 1, rows: rows(50_000) } });
    for (const { status, text, headers } of responses) {
      expect([status, text === wanted, headers['content-encoding']]).toEqual([200, true, 'br']);
      expect(headers['content-type']).toMatch(/^application\/json/);
      expect(headers.etag).toBe(responses[0]!.headers.etag);
    }
    await settle(test.app);
    const stats = test.app.get(PerfService).snapshot().compression!;
    expect(stats).toMatchObject({ responses: 50, compressed: 50, cacheHits: 49 });
    expect(stats.bytesIn).toBe(50 * wanted.length);
    expect(stats.cacheBytes).toBeGreaterThan(wanted.length);
  });

  it('makes a new answer after the TTL, and serves the old one while it is made', async () => {
    await start();
    expect((await get('s/feed')).text).toContain('"version":1');
    expect((await get('s/feed')).text).toContain('"version":1');
    let release!: () => void;
    feed.hold = new Promise((resolve) => (release = resolve));
    later(61_000);
    const refreshing = get('s/feed');
    await expect.poll(() => feed.handler).toBe(2);
    expect((await get('s/feed')).text).toContain('"version":1');
    release();
    expect((await refreshing).text).toContain('"version":2');
    expect((await get('s/feed')).text).toContain('"version":2');
    expect(feed.handler).toBe(2);
  });

  it('never keeps an error', async () => {
    await start();
    feed.fails = true;
    expect((await get('s/feed')).status).toBe(503);
    expect((await get('s/feed')).status).toBe(503);
    expect(feed.handler).toBe(2);
    feed.fails = false;
    expect((await get('s/feed')).text).toContain('"version":3');
  });

  it('lets nobody past a guard, in whatever order the decorators stand', async () => {
    await start();
    for (const path of ['s/guarded', 's/feed']) {
      expect((await get(path)).status).toBe(200);
      expect((await get(path)).status).toBe(200);
      if (path === 's/feed') expect((await get(path, { 'x-token': 'bad' })).status).toBe(403);
    }
    // The handler's own catch-all filter sees the guard's exception, but never the shared answer.
    expect((await get('s/guarded', { 'x-token': 'bad' })).status).toBe(500);
    expect(feed.handler).toBe(2);
  });

  it("is not taken for an exception by the handler's own catch-all filter", async () => {
    await start();
    for (let again = 0; again < 2; again++) {
      const { status, text } = await get('s/caught');
      expect([status, text]).toEqual([200, '{"version":1}']);
    }
  });

  it('tells answers apart by path, query and varyBy', async () => {
    await start();
    const german = await get('s/by-language', { 'accept-language': 'de' });
    const english = await get('s/by-language', { 'accept-language': 'en' });
    expect(german.text).toContain('"language":"de"');
    expect(english.text).toContain('"language":"en"');
    expect((await get('s/by-language', { 'accept-language': 'de' })).text).toBe(german.text);
    expect(feed.handler).toBe(2);
    await get('s/by-language?a=1', { 'accept-language': 'de' });
    expect(feed.handler).toBe(3);
  });

  it('tells hosts apart, as their controllers do', async () => {
    await start();
    for (let again = 0; again < 2; again++) {
      for (const tenant of ['a', 'b'])
        expect((await get('tenant', { host: `${tenant}.test` })).text).toBe(`{"tenant":"${tenant}"}`);
    }
    expect(feed.handler).toBe(2);
  });

  it.each(['s/text', 's/buffer'])(
    'repeats body and headers of %s to clients of every coding, and 304',
    async (path) => {
      await start();
      const first = await get(path);
      for (const coding of ['br', 'gzip', 'deflate', 'identity']) {
        const response = await callAccepting(`${test.url}/${path}`, coding);
        expect(response.headers['content-encoding']).toBe(coding === 'identity' ? undefined : coding);
        expect(response.text).toBe(first.text);
        expect(response.headers['content-type']).toBe(first.headers['content-type']);
        expect(response.headers['x-feed']).toBe(first.headers['x-feed']);
        const headers = { 'if-none-match': String(response.headers.etag) };
        const again = await callAccepting(`${test.url}/${path}`, coding, { headers });
        expect([again.status, again.raw.byteLength, again.headers.etag]).toEqual([304, 0, response.headers.etag]);
      }
      expect(feed.handler).toBe(1);
    },
  );

  it('runs the handler of a stream for everybody', async () => {
    await start();
    const answers = await Promise.all([get('s/stream'), get('s/stream'), get('s/stream')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(feed.handler).toBe(3);
  });

  it.each(['br', 'identity'])('makes the next answer from a client that has it already as %s', async (coding) => {
    await start();
    const text = await callAccepting(`${test.url}/s/text`, coding);
    const etag = String(text.headers.etag);
    later(61_000);
    const refreshing = await callAccepting(`${test.url}/s/text`, coding, { headers: { 'if-none-match': etag } });
    expect([refreshing.status, refreshing.raw.byteLength, refreshing.headers.etag]).toEqual([304, 0, etag]);
    const handled = feed.handler;
    expect((await callAccepting(`${test.url}/s/text`, coding)).text).toBe(text.text);
    expect(feed.handler).toBe(handled);
  });

  it('works in request-scoped controllers', async () => {
    await start();
    expect((await get('scoped')).text).toBe('{"n":1}');
    expect((await get('scoped')).text).toBe('{"n":1}');
  });

  it('does not wait for ever when the client that makes the answer leaves', async () => {
    await start();
    let release!: () => void;
    feed.hold = new Promise((resolve) => (release = resolve));
    const leader = http.get(`${test.url}/s/feed`, { agent: false }).on('error', () => {});
    await expect.poll(() => feed.handler).toBe(1);
    const follower = get('s/feed');
    await expect.poll(() => feed.guard).toBe(2);
    leader.destroy();
    await expect.poll(() => feed.handler).toBe(2);
    release();
    expect((await follower).status).toBe(200);
  });
});
