import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { settle } from '../../src/entries/testing.js';
import { either, startApp } from '../fixtures/app.js';
import { gate } from '../fixtures/cached-data.js';
import { minute, recordedShop, ShopController } from '../fixtures/recorded-shop.js';
import { linesOf } from '../fixtures/recordings.js';

describe.each(either('express'))('a recording, on %s', (adapter) => {
  it('holds what a replay needs, and no secret', async () => {
    const { url, recording, get, ended } = await recordedShop(
      adapter,
      { allowQuery: ['q'] },
      { eventLoop: { replay: { denyNames: ['plate', 'voucher'] } } },
    );
    await get('/items/before?it=begins');
    recording.start(minute);
    await get('/items/7?q=shoes&token=hunter2', {
      authorization: 'Bearer hunter2',
      cookie: 'sid=hunter2',
      'x-api-key': 'hunter2',
      'x-session': 'hunter2',
      'accept-language': 'de',
    });
    await get('/reset/hunter2');
    const body = JSON.stringify({ item: 'shoe', card: 'hunter2', inner: [{ plate: 'hunter2', voucher: 'hunter2' }] });
    const headers = { 'content-type': 'application/json' };
    await (await fetch(`${url}/orders`, { method: 'POST', headers, body })).arrayBuffer();
    await get('/nowhere/eyJhbGciOiJIUzI1NiJ9.eyJodW50ZXIyIjoxfQ.c2ln');
    await get('/health');
    const lines = await ended();
    expect(JSON.stringify(lines)).not.toMatch(/hunter2|eyJ|begins/);
    expect(lines.map(({ method, route, status }) => `${method} ${route} ${status}`)).toEqual([
      'GET /items/:id 200',
      'GET /reset/:token 200',
      'POST /orders 201',
      'GET  404',
    ]);
    const [item, reset, order] = lines as [(typeof lines)[0], (typeof lines)[0], (typeof lines)[0]];
    expect(item).toMatchObject({
      v: 1,
      url: '/items/7?q=shoes&token=[redacted]',
      headers: { 'accept-language': 'de' },
      body: null,
      redacted: expect.arrayContaining(['headers.authorization', 'headers.cookie', 'headers.x-api-key', 'url']),
    });
    expect(item.session).toMatch(/^[0-9a-f]{16}$/);
    expect(item.durationMs).toBeGreaterThan(0);
    expect(item.time).not.toBeNull();
    expect(Math.abs(item.t - Date.now())).toBeLessThan(60_000);
    expect(reset).toMatchObject({ url: '/reset/[redacted]', session: null, redacted: ['url'] });
    expect(order.body).toEqual({
      item: 'shoe',
      card: '[redacted]',
      inner: [{ plate: '[redacted]', voucher: '[redacted]' }],
    });
    expect(order.redacted).toEqual(['body.card', 'body.inner[].plate', 'body.inner[].voucher']);
  });

  it('holds what a client has already, so that a 304 is one when it is replayed', async () => {
    const { recording, get, ended } = await recordedShop(adapter);
    recording.start(minute);
    const known = { 'if-none-match': 'W/"2c-abc"', 'if-modified-since': 'Tue, 24 Nov 2026 13:00:00 GMT' };
    await get('/items/7', known);
    const looksRandom = { 'if-none-match': '"4f5b2c9d8e7f6a5b4c3d2e1f0a9b8c7d"' };
    await get('/items/8', looksRandom);
    const [item, hash] = await ended();
    expect(item!.headers).toMatchObject(known);
    expect(hash).toMatchObject({ headers: looksRandom, redacted: [] });
  });

  it('says of a body that it does not hold that it is left out, whoever was to read it', async () => {
    const { url, recording, ended } = await recordedShop(adapter, { maxBodyBytes: 20 });
    const post = async (init: RequestInit & { duplex?: 'half' }): Promise<void> =>
      void (await (await fetch(`${url}/uploads`, { method: 'POST', ...init })).arrayBuffer());
    const headers = { 'content-type': 'application/json' };
    const form = new FormData();
    form.set('file', new Blob(['x']), 'a.txt');
    recording.start(minute);
    await post({});
    await post({ headers, body: '{"item":"shoe"}' });
    await post({ headers, body: '{"item":"a shoe that is too large"}' });
    await post({ headers, body: new Blob(['{"item":1}']).stream(), duplex: 'half' });
    await post({ headers, body: new Blob(['{"item":"a shoe that is too large"}']).stream(), duplex: 'half' });
    await post({ body: form });
    const lines = await ended();
    expect(lines.map(({ body }) => body)).toEqual([null, { item: 'shoe' }, null, { item: 1 }, null, null]);
    expect(lines.map(({ redacted }) => redacted.includes('body'))).toEqual([false, false, true, false, true, true]);
  });

  it('begins with the first request after its start: the one that starts it would start another when it is replayed', async () => {
    const { get, ended } = await recordedShop(adapter);
    await get('/record');
    await get('/items/7');
    expect((await ended()).map(({ url }) => url)).toEqual(['/items/7']);
  });

  it('has only what can be sent again: no `OPTIONS *`, no unknown method, and a path where a client sent none', async () => {
    const { url, recording, ended } = await recordedShop(adapter);
    recording.start(minute);
    const port = Number(new URL(url).port);
    for (const line of ['OPTIONS *', 'M-SEARCH /items/7', 'GET http://api.local?x=1', 'GET /items/7']) {
      const socket = createConnection(port, '127.0.0.1');
      socket.end(`${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      await once(socket.resume(), 'close');
    }
    const lines = await ended();
    expect(lines.map(({ method, url: sent }) => `${method} ${sent}`)).toEqual(['GET /?x=1', 'GET /items/7']);
  });

  it('holds no body unless it is asked for', async () => {
    const { url, recording, ended } = await recordedShop(adapter, { maxBodyBytes: undefined as never });
    recording.start(minute);
    const headers = { 'content-type': 'application/json' };
    await (
      await fetch(`${url}/orders`, { method: 'POST', headers, body: '{"item":"for Ada, 1 Side Street"}' })
    ).arrayBuffer();
    const [order] = await ended();
    expect(order).toMatchObject({ body: null, redacted: ['body'], status: 201 });
    expect(JSON.stringify(order)).not.toContain('Side Street');
  });

  it('has one line a request, whatever a body holds', async () => {
    const { url, recording, ended } = await recordedShop(adapter);
    recording.start(minute);
    const item = 'a\u2028b\u2029c\u0085d';
    const headers = { 'content-type': 'application/json' };
    await (await fetch(`${url}/orders`, { method: 'POST', headers, body: JSON.stringify({ item }) })).arrayBuffer();
    const [order] = await ended();
    expect(order!.body).toEqual({ item });
    const { file } = await recording.stop();
    // Node 24 ends a line at each of them.
    expect(gunzipSync(readFileSync(file)).toString().trimEnd()).not.toMatch(/[\n\u0085\u2028\u2029]/);
  });

  it('ends with the application, without requests whose client has left, and replaces nothing of the adapter', async () => {
    const { app, recording, get, url, close } = await recordedShop(adapter);
    const adapterOfNest = app.getHttpAdapter();
    const { reply } = adapterOfNest;
    recording.start(minute);
    expect(adapterOfNest.reply).toBe(reply);
    await get('/items/1');
    ShopController.hangs = gate();
    const leaving = new AbortController();
    const left = fetch(`${url}/hang`, { signal: leaving.signal }).catch(() => undefined);
    await ShopController.hangs.passed;
    leaving.abort();
    await left;
    await settle(app);
    await close();
    const { file } = await recording.stop();
    expect(linesOf(file).map(({ route }) => route)).toEqual(['/items/:id']);
    expect(() => recording.start(minute)).toThrow('PERF_ERR_RECORDING: The application has closed');
  });

  it('needs no other feature, and is of one application', async () => {
    const off = { latency: false, eventLoop: false, upstream: false, users: false, compression: false, defer: false };
    const { recording, get, ended } = await recordedShop(adapter, {}, { ...off, resources: false });
    const { url, close } = await startApp(adapter, { metadata: { controllers: [ShopController] } });
    recording.start(minute);
    await get('/items/1');
    await (await fetch(`${url}/items/2`)).arrayBuffer();
    await close();
    expect(await ended()).toMatchObject([{ url: '/items/1', status: 200, time: null }]);
  });
});
