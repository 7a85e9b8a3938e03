import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:http2';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Body, Controller, Get, HttpCode, Inject, Param, Post, Req } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { record, type RecordOptions } from '../../src/entries/record.js';
import { PerfService, SkipPerf, type PerfModuleOptions, type PerfRequest } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { adapterOf, adapters, startApp, type TestApp } from '../fixtures/app.js';
import { linesOf } from '../fixtures/recordings.js';
import { until } from '../fixtures/until.js';

@Controller()
class ShopController {
  @Get('items/:id')
  item(@Param('id') id: string) {
    return { id, tags: ['a', 'b'], price: 1.5 };
  }

  @Get('reset/:token')
  reset(@Param('token') _token: string) {
    return 'done';
  }

  @Post('orders')
  @HttpCode(201)
  order(@Body() body: { item: string }) {
    return { item: body.item, at: new Date() };
  }

  @Post('uploads')
  upload() {
    return 'done';
  }

  @Get('health')
  @SkipPerf()
  health() {
    return 'ok';
  }

  @Get('hang')
  hang(@Req() _request: unknown) {
    return new Promise(() => undefined);
  }
}

@Controller()
class AdminController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  @Get('record')
  start() {
    this.perf.recording.start(minute);
    return {};
  }
}

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), 'perf-recording-'))));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const session = (request: PerfRequest): string | undefined => request.headers['x-session'] as string | undefined;
const minute = { forMs: 60_000 };

describe.each(adapters)('a recording, on %s', (adapter) => {
  let started: TestApp | null = null;
  afterEach(async () => {
    await started?.close();
    started = null;
  });

  async function shop(
    options: Partial<RecordOptions> = {},
    perf: PerfModuleOptions = {},
    server?: AbstractHttpAdapter,
  ) {
    const extensions = [record({ directory, sessions: session, ...options })];
    const metadata = { controllers: [ShopController, AdminController] };
    const test = await startApp(adapter, {
      perf: { ...perf, extensions },
      metadata,
      ...(server && { adapter: server }),
    });
    started = test;
    const { recording } = test.app.get(PerfService);
    const get = async (path: string, headers: Record<string, string> = {}): Promise<void> =>
      void (await (await fetch(test.url + path, { headers })).arrayBuffer());
    const ended = async () => {
      await settle(test.app);
      const { file, requests } = await recording.stop();
      const lines = linesOf(file);
      expect(lines).toHaveLength(requests);
      return lines;
    };
    return { ...test, recording, get, ended };
  }

  it('holds what a replay needs, and no secret', async () => {
    const { url, recording, get, ended } = await shop(
      { denyNames: ['voucher'] },
      { eventLoop: { replay: { denyNames: ['plate'] } } },
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
    expect(item.sizeBytes).toBe(JSON.stringify({ id: '7', tags: ['a', 'b'], price: 1.5 }).length);
    expect(item.shape).toMatch(/^[0-9a-f]{16}$/);
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
    const { recording, get, ended } = await shop();
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
    const { url, recording, ended } = await shop({ maxBodyBytes: 20 });
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
    await post({ body: form });
    const lines = await ended();
    expect(lines.map(({ body }) => body)).toEqual([null, { item: 'shoe' }, null, null, null]);
    expect(lines.map(({ redacted }) => redacted.includes('body'))).toEqual([false, false, true, true, true]);
  });

  it.runIf(adapter === 'fastify')('says it of HTTP/2, where no header tells of a body, as well', async () => {
    const http2 = adapterOf('fastify', { http2: true }) as AbstractHttpAdapter & FastifyAdapter;
    // As an upload: the handler reads it.
    http2
      .getInstance()
      .addContentTypeParser(
        'multipart/form-data',
        (_request: unknown, _payload: unknown, done: (error: null) => void) => done(null),
      );
    const { url, recording, ended } = await shop({}, {}, http2);
    const client = connect(url);
    const send = async (headers: OutgoingHttpHeaders, body: string | null): Promise<void> => {
      const stream = client.request(
        { ':method': 'POST', ':path': '/uploads', ...headers },
        { endStream: body === null },
      );
      await once(stream.end(body).resume(), 'close');
    };
    const [upload, json] = ['multipart/form-data; boundary=x', 'application/json'];
    recording.start(minute);
    await send({ 'content-type': upload }, '--x--');
    await send({ 'content-type': json }, '{}');
    await send({ 'content-type': json, 'content-length': 2 }, '{}');
    await send({ ':method': 'GET', ':path': '/items/7', 'content-type': json }, null);
    await send({}, '');
    client.close();
    const lines = await ended();
    expect(lines.map(({ body }) => body)).toEqual([null, null, {}, null, null]);
    expect(lines.map(({ redacted }) => redacted.includes('body'))).toEqual([true, true, false, false, false]);
  });

  it('begins with the first request after its start: the one that starts it would start another when it is replayed', async () => {
    const { get, ended } = await shop();
    await get('/record');
    await get('/items/7');
    expect((await ended()).map(({ url }) => url)).toEqual(['/items/7']);
  });

  it('has only what can be sent again: no `OPTIONS *`, no unknown method, and a path where a client sent none', async () => {
    const { url, recording, ended } = await shop();
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

  it('keeps the time between requests when the clock is set meanwhile', async () => {
    const { recording, get, ended } = await shop();
    recording.start(minute);
    await get('/items/1');
    const now = Date.now.bind(Date);
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
    onTestFinished(() => clock.mockRestore());
    await get('/items/2');
    const [before, after] = await ended();
    expect(after!.t - before!.t).toBeLessThan(1_800_000);
    expect(Math.abs(before!.t - now())).toBeLessThan(60_000);
  });

  it('has one line a request, whatever a body holds', async () => {
    const { url, recording, ended } = await shop();
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

  it('keeps whole sessions below its rate, and of each route a floor', async () => {
    const { recording, get, ended } = await shop({ requestsPerSecond: 40, perRoute: 3 });
    const startedMs = performance.now();
    recording.start(minute);
    for (let round = 0; round < 8; round++) {
      await Promise.all(
        Array.from({ length: 40 }, (_, user) => get(`/items/${round}`, { 'x-session': `user ${user}` })),
      );
    }
    for (let i = 0; i < 5; i++) await get(`/reset/${i}`, { 'x-session': 'one who comes late' });
    const lines = await ended();
    const seconds = 1 + (performance.now() - startedMs) / 1_000;
    const items = lines.filter(({ session, route }) => session !== null && route === '/items/:id');
    expect(items.length).toBeGreaterThan(0);
    for (const session of new Set(items.map((line) => line.session)))
      expect(items.filter((line) => line.session === session).map(({ url }) => url)).toEqual(
        Array.from({ length: 8 }, (_, round) => `/items/${round}`),
      );
    expect(lines.filter(({ session }) => session !== null).length).toBeLessThanOrEqual(40 * seconds);
    const rare = lines.filter(({ route }) => route === '/reset/:token');
    expect(rare.length).toBeGreaterThanOrEqual(3);
    // Of a session that is not whole, each stands alone.
    expect([0, 5]).toContain(rare.filter(({ session }) => session !== null).length);
  });

  it('keeps all of a burst where its average is below its rate', async () => {
    const { recording, get, ended } = await shop({ requestsPerSecond: 2, perRoute: 0 });
    recording.start(minute);
    await Promise.all(Array.from({ length: 100 }, (_, i) => get(`/items/${i}`, { 'x-session': `user ${i % 20}` })));
    // The rest of its minute goes by without a request.
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 55_000);
    onTestFinished(() => clock.mockRestore());
    const lines = await ended();
    expect(lines).toHaveLength(100);
    expect(lines.every(({ session }) => session !== null)).toBe(true);
  });

  it('leaves out more where its lines would not last to its end', async () => {
    const { recording, get, ended } = await shop({ requestsPerSecond: 40, perRoute: 1, maxBytes: 330_000 });
    recording.start(minute);
    // 440 KB, were all of it recorded; 320 KB at the most, if that takes no more than twelve seconds.
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 100 }, (_, i) => get(`/items/${round}`, { 'x-session': `user ${i}` })));
    await get('/reset/last');
    const lines = await ended();
    // It has gone on to its end; of answers at the same time, any may be the last.
    expect(lines.map(({ route }) => route)).toContain('/reset/:token');
    const kept = lines.filter(({ session }) => session !== null);
    expect(kept.length).toBeGreaterThan(0);
    expect(kept).toHaveLength(10 * new Set(kept.map(({ session }) => session)).size);
  });

  it('has a request whose session cannot be told, whatever `sessions` throws', async () => {
    const sessions = (): string => {
      // eslint-disable-next-line no-throw-literal
      throw null;
    };
    const { recording, get, ended } = await shop({ sessions });
    recording.start(minute);
    await get('/items/7');
    expect((await ended()).map(({ url, session }) => [url, session])).toEqual([['/items/7', null]]);
  });

  it('ends by itself at its time and at its bytes, and leaves one file for its owner', async () => {
    const own = join(directory, `${adapter}/of its own`);
    const { recording, get } = await shop({ directory: own, maxBytes: 2_000 });
    recording.start({ forMs: 20 });
    await until('the end of its time', () => readdirSync(own).some((file) => file.endsWith('.gz')));
    expect((await recording.stop()).requests).toBe(0);
    recording.start(minute);
    for (let i = 0; i < 20; i++) await get(`/items/${i}`);
    await until('the end of its bytes', () => readdirSync(own).filter((file) => file.endsWith('.gz')).length === 2);
    const { file, requests } = await recording.stop();
    expect(linesOf(file)).toHaveLength(requests);
    expect(requests).toBeGreaterThan(1);
    expect(statSync(file).size).toBeLessThan(2_000);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(own).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('ends with the application, without who has left, and gives back what it has looked through', async () => {
    const { app, recording, get, url, close } = await shop();
    const adapterOfNest = app.getHttpAdapter();
    const { reply } = adapterOfNest;
    recording.start(minute);
    expect(adapterOfNest.reply).not.toBe(reply);
    await get('/items/1');
    await fetch(`${url}/hang`, { signal: AbortSignal.timeout(50) }).catch(() => undefined);
    await settle(app);
    started = null;
    await close();
    const { file } = await recording.stop();
    expect(linesOf(file).map(({ route }) => route)).toEqual(['/items/:id']);
    expect(adapterOfNest.reply).toBe(reply);
    expect(() => recording.start(minute)).toThrow('PERF_ERR_RECORDING: The application has closed');
  });

  it('needs no other feature, and is of one application', async () => {
    const off = { latency: false, eventLoop: false, upstream: false, users: false, compression: false, defer: false };
    const { recording, get, ended } = await shop({}, { ...off, resources: false });
    const { url, close } = await startApp(adapter, { metadata: { controllers: [ShopController] } });
    recording.start(minute);
    await get('/items/1');
    await (await fetch(`${url}/items/2`)).arrayBuffer();
    await close();
    expect(await ended()).toMatchObject([{ url: '/items/1', status: 200, time: null }]);
  });

  it('says when its file is lost, at stop() and on closing', async () => {
    const own = join(directory, `${adapter} lost`);
    const { recording, get } = await shop({ directory: own });
    recording.start(minute);
    await get('/items/1');
    rmSync(own, { recursive: true });
    await expect(recording.stop()).rejects.toThrow(/^PERF_ERR_RECORDING: The recording could not be written: ENOENT/);
    recording.start(minute);
    rmSync(own, { recursive: true });
    const { app } = started!;
    started = null;
    await app.close();
  });

  it('says what is wrong, and what to do', async () => {
    const { recording } = await shop();
    await expect(recording.stop()).rejects.toThrow('PERF_ERR_RECORDING: No recording was started');
    for (const forMs of [undefined, 0, -1, Infinity, '1'])
      expect(() => recording.start({ forMs: forMs as number })).toThrow(
        'PERF_ERR_OPTION: `recording.start().forMs` must be a number of milliseconds above 0',
      );
    expect(() => recording.start(undefined as never)).toThrow('PERF_ERR_OPTION');
    recording.start(minute);
    expect(() => recording.start(minute)).toThrow('PERF_ERR_RECORDING: A recording is running already');
    await started!.close();

    writeFileSync(join(directory, `file of ${adapter}`), '');
    const nowhere = await shop({ directory: join(directory, `file of ${adapter}`, 'below') });
    expect(() => nowhere.recording.start(minute)).toThrow(
      /^PERF_ERR_RECORDING: `record.directory` ".*" cannot be written to: .*emptyDir/,
    );
    await started!.close();

    const off = await shop({}, { enabled: false });
    expect(() => off.recording.start(minute)).toThrow('PERF_ERR_OFF');
    await started!.close();

    started = await startApp(adapter);
    const { recording: none } = started.app.get(PerfService);
    const line =
      /^PERF_ERR_EXTENSION: .*Add it: PerfModule.forRoot\(\{ extensions: \[record\(\{ directory: '.*' \}\)\] \}\)/;
    expect(() => none.start(minute)).toThrow(line);
    await expect(none.stop()).rejects.toThrow(line);
  });
});

it('refuses options that are wrong', () => {
  expect(() => record({} as never)).toThrow(
    'PERF_ERR_OPTION: `record.directory` must be the path of a directory, got `undefined`.',
  );
  expect(() => record({ directory: '/tmp', perRoute: -1 })).toThrow(
    '`record.perRoute` must be a number of requests of 0 or more',
  );
});
