import { VersioningType } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { PerfModule, PerfService, type RouteSnapshot } from '../../src/index.js';
import { memorySink, settle } from '../../src/entries/testing.js';
import { adapterOf, adapters, startApp } from '../fixtures/app.js';
import {
  FirstController,
  ItemsController,
  SecondController,
  ShelvesController,
  SkippedController,
  VersionedController,
} from '../fixtures/items.controller.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

const controllers = [ItemsController, SkippedController, FirstController, SecondController];
const features = ['latency', 'eventLoop', 'upstream', 'users', 'history', 'resources', 'compression', 'defer'];
const everythingOff = Object.fromEntries(features.map((name) => [name, false]));
const rowOf = (routes: readonly RouteSnapshot[], route: string): RouteSnapshot =>
  routes.find((r) => r.route === route)!;

describe.each(adapters)('latency on %s', (adapter) => {
  it('answers percentiles within 1 % of the exact ones of a recorded run', async () => {
    const running = await startApp(adapter, { metadata: { controllers } });
    await Promise.all(
      Array.from({ length: 200 }, async (_, i) => (await fetch(`${running.url}/items?ms=${i % 20}`)).text()),
    );
    const durations = (await running.requests()).map((r) => r.durationMs).sort((a, b) => a - b);
    const { durationMs, count, over } = rowOf(running.app.get(PerfService).snapshot().routes, '/items');
    await running.close();
    expect(count).toBe(200);
    expect(over.map(({ ms }) => ms)).toEqual([1000, 2000, 5000]);
    for (const [key, q] of [
      ['p50', 0.5],
      ['p90', 0.9],
      ['p95', 0.95],
      ['p99', 0.99],
    ] as const) {
      const exact = durations[Math.ceil(q * durations.length) - 1]!;
      expect(Math.abs(durationMs[key] - exact) / exact).toBeLessThanOrEqual(0.01);
    }
    expect(durationMs.max).toBe(durations.at(-1));
    expect(durationMs.mean).toBeCloseTo(durations.reduce((sum, ms) => sum + ms, 0) / 200, 6);
  });

  it('adds up to what the clients counted, over 100 connections', async () => {
    const running = await startApp(adapter, { metadata: { controllers } });
    const clients = await Promise.all(Array.from({ length: 100 }, () => RawClient.open(running.port)));
    await Promise.all(
      clients.map(async (client, index) => {
        for (let i = 1; i <= 5; i++) {
          client.get(index % 2 === 0 ? `/items/${index}` : `/missing/${index}`);
          await client.until('HTTP/1.1 ', i);
        }
        await client.until(index % 2 === 0 ? '"id"' : 'Not Found', 5);
      }),
    );
    await settle(running.app);
    const { routes } = running.app.get(PerfService).snapshot();
    for (const client of clients) client.leave();
    await running.close();
    expect(rowOf(routes, '/items/:id')).toMatchObject({
      count: 250,
      aborted: 0,
      errors: 0,
      inFlight: 0,
      statuses: { '2xx': 250 },
    });
    expect(rowOf(routes, '')).toMatchObject({ count: 250, statuses: { '4xx': 250 } });
    expect(await running.requests()).toHaveLength(500);
  });

  it('shares one entry among random URLs and does not grow with them', async () => {
    const running = await startApp(adapter, { metadata: { controllers } });
    const client = await RawClient.open(running.port);
    const total = process.env['PERF_LONG'] === undefined ? 200 : 10_000;
    for (let i = 1; i <= total; i++) {
      client.get(`/${Math.random().toString(36).slice(2)}`);
      if (i % 100 === 0) {
        await client.until('"error":"Not Found"', 100);
        client.received = '';
      }
    }
    await settle(running.app);
    const { routes } = running.app.get(PerfService).snapshot();
    client.leave();
    await running.close();
    expect(routes).toHaveLength(1);
    expect(routes[0]).toMatchObject({ method: 'GET', route: '', handler: null, count: total });
  }, 60_000);

  it('keeps the figures of routes apart that answer with several statuses', async () => {
    const running = await startApp(adapter, { metadata: { controllers: [ShelvesController] } });
    for (const path of ['few/1', 'few/none', 'many/1', 'many/2', 'many/none'])
      await fetch(`${running.url}/shelves/${path}`);
    await settle(running.app);
    const { routes } = running.app.get(PerfService).snapshot();
    await running.close();
    expect(rowOf(routes, '/shelves/few/:id')).toMatchObject({ count: 2, statuses: { '2xx': 1, '4xx': 1 } });
    expect(rowOf(routes, '/shelves/many/:id')).toMatchObject({ count: 3, statuses: { '2xx': 2, '4xx': 1 } });
  });

  it('names the handler of each controller that inherits one method', async () => {
    const running = await startApp(adapter, { metadata: { controllers } });
    await fetch(`${running.url}/first/inherited`);
    await fetch(`${running.url}/second/inherited`);
    const records = await running.requests();
    await running.close();
    expect(records.map((r) => r.handler)).toEqual(['FirstController.inherited', 'SecondController.inherited']);
  });

  it('handlers that only a version tells apart share a route and a name', async () => {
    const running = await startApp(adapter, {
      metadata: { controllers: [VersionedController] },
      beforeInit: (app) => void app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
    });
    for (const version of ['1', '2', '3']) {
      await fetch(`${running.url}/versioned`, { headers: { 'x-version': version } });
    }
    const records = await running.requests();
    await running.close();
    expect(records.map(({ route, handler, status }) => ({ route, handler, status }))).toEqual([
      { route: '/versioned', handler: 'VersionedController.first | VersionedController.second', status: 200 },
      { route: '/versioned', handler: 'VersionedController.first | VersionedController.second', status: 200 },
      // Fastify itself finds no route; behind Express the handlers of the route refuse.
      adapter === 'fastify'
        ? { route: '', handler: null, status: 404 }
        : { route: '/versioned', handler: 'VersionedController.first | VersionedController.second', status: 404 },
    ]);
  });

  it('leaves out @SkipPerf() handlers and ignored patterns', async () => {
    const running = await startApp(adapter, { metadata: { controllers }, perf: { latency: { ignore: ['/items'] } } });
    await fetch(`${running.url}/health`);
    await fetch(`${running.url}/items`);
    await fetch(`${running.url}/items/1`);
    const records = await running.requests();
    const { routes } = running.app.get(PerfService).snapshot();
    await running.close();
    expect(records.map((r) => r.route)).toEqual(['/items/:id']);
    expect(routes.map((r) => r.route)).toEqual(['/items/:id']);
  });

  it('shows requests in flight that no route has got yet', async () => {
    let goOn: (() => void) | null = null;
    const running = await startApp(adapter, {
      metadata: { controllers },
      beforeInit: (app) =>
        void app.use((_request: unknown, _response: unknown, next: () => void) => void (goOn = next)),
    });
    const answer = fetch(`${running.url}/items/1`);
    await until('the request', () => goOn !== null);
    const inFlight = (): number =>
      running.app
        .get(PerfService)
        .snapshot()
        .routes.reduce((sum, row) => sum + row.inFlight, 0);
    expect(inFlight()).toBe(1);
    goOn!();
    await (await answer).text();
    await running.requests();
    expect(inFlight()).toBe(0);
    await running.close();
  });

  it('shows requests in flight under their route', async () => {
    const running = await startApp(adapter, { metadata: { controllers } });
    const client = await RawClient.open(running.port);
    const started = new Promise((resolve) => running.app.getHttpServer().once('request', resolve));
    client.get('/items?ms=100');
    await started;
    await new Promise((resolve) => setImmediate(resolve));
    expect(rowOf(running.app.get(PerfService).snapshot().routes, '/items').inFlight).toBe(1);
    await client.until('200 OK');
    client.leave();
    await running.close();
  });

  it('adds the Server-Timing header only when asked, and keeps the one of the application', async () => {
    const running = await startApp(adapter, { metadata: { controllers }, perf: { latency: { serverTiming: true } } });
    const plain = await startApp(adapter, { metadata: { controllers } });
    const timed = await fetch(`${running.url}/items/1`);
    const bare = await fetch(`${plain.url}/items/1`);
    const both = await fetch(`${running.url}/items/of/database`);
    await running.close();
    await plain.close();
    expect(timed.headers.get('server-timing')).toMatch(
      /^total;dur=\d+\.\d, own;dur=\d+\.\d, up;dur=0\.0, wait;dur=\d+\.\d$/,
    );
    expect(both.headers.get('server-timing')).toMatch(/^db;dur=5, total;dur=\d+\.\d, own;.+ up;.+ wait;dur=\d+\.\d$/);
    expect(bare.headers.get('server-timing')).toBeNull();
  });

  it('takes an incoming x-request-id only when it is safe to log', async () => {
    const running = await startApp(adapter, { metadata: { controllers } });
    const hostile = ['ok-1.2:/+=_', 'x'.repeat(10_000), 'a b', 'tab\there', '<script>', 'ünïcode', 'quote"', ''];
    for (const id of hostile) {
      const client = await RawClient.open(running.port);
      client.socket.write(
        `GET /items/1 HTTP/1.1\r\nHost: t\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n`,
        'latin1',
      );
      await client.until('HTTP/1.1 ');
      await new Promise((resolve) => client.socket.once('close', resolve));
    }
    const ids = (await running.requests()).map(({ id }) => id);
    await running.close();
    expect(ids).toHaveLength(hostile.length);
    expect(ids[0]).toBe('ok-1.2:/+=_');
    for (const id of ids.slice(1)) expect(id).toMatch(/^[0-9a-z]{4,8}-[0-9a-z]+$/);
  });

  it('is wired under @nestjs/testing as well', async () => {
    const sink = memorySink();
    const module = await Test.createTestingModule({
      imports: [PerfModule.forRoot({ sinks: [sink] })],
      controllers,
    }).compile();
    const app = module.createNestApplication(adapterOf(adapter), { logger: false });
    await app.listen(0, '127.0.0.1');
    await fetch(`${await app.getUrl()}/items/1`);
    await settle(app);
    await app.close();
    // A busy machine may give it blocks as well.
    const requests = sink.records.filter(({ kind }) => kind === 'request');
    expect(requests).toMatchObject([{ route: '/items/:id', handler: 'ItemsController.item' }]);
  });

  it('installs nothing when it is switched off', async () => {
    const bare = await startApp(adapter, { metadata: { controllers }, perf: everythingOff });
    const server = bare.app.getHttpServer() as import('node:http').Server;
    const listeners = server.listenerCount('request');
    await fetch(`${bare.url}/items/1`);
    const records = await bare.requests();
    const { routes } = bare.app.get(PerfService).snapshot();
    await bare.close();
    expect(listeners).toBe(1);
    expect(records).toEqual([]);
    expect(routes).toEqual([]);
  });
});
