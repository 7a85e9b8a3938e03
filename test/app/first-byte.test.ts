import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { connect as connectHttp2, constants as http2, type ClientHttp2Session } from 'node:http2';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Body, Controller, Get, HttpCode, Post, Res, Sse, StreamableFile } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PerfApplication } from '../../src/request/application.js';
import { adapterOf, adapters, type Adapter } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf, type BuiltApp } from '../fixtures/build-app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

const GAP_MS = 300;
/** Timers may fire a moment before their time. */
const EARLY_MS = 2;

let stream: PassThrough;
let events: Subject<{ data: string }>;
let isEntered = false;
let release: () => void = () => {};
beforeEach(() => {
  stream = new PassThrough();
  events = new Subject();
  isEntered = false;
});
afterEach(closeApps);

@Controller()
class StreamController {
  /** Its first byte at once, the last one when the test says so. */
  @Get('stream')
  stream() {
    stream.write('first,');
    return new StreamableFile(stream, { type: 'text/plain' });
  }
  @Sse('events')
  events() {
    setImmediate(() => events.next({ data: 'first' }));
    return events;
  }
  @Get('held')
  async held() {
    isEntered = true;
    await new Promise<void>((resolve) => (release = resolve));
    return 'too late';
  }
  @Get('json')
  json() {
    return { rows: Array.from({ length: 5_000 }, (_, id) => ({ id, name: `row ${id}` })) };
  }
  @Get('nothing')
  @HttpCode(204)
  nothing() {}
  @Get('refused')
  refused(@Res() response: ServerResponse & { raw?: ServerResponse }) {
    const raw = response.raw ?? response;
    try {
      raw.writeHead(200, { 'x-name': 'no\nheader' });
    } catch {
      setTimeout(() => raw.end('sent later'), GAP_MS);
    }
  }
  @Get('derived')
  derived(@Res() response: ServerResponse & { raw?: ServerResponse }) {
    const raw = response.raw ?? response;
    (Object.create(raw) as ServerResponse).writeHead(200);
    raw.end('derived');
  }
  @Post('body')
  body(@Body() body: object) {
    return body;
  }
}

const start = (adapter: Adapter, compression = true) =>
  listeningApp(adapterOf(adapter), { metadata: { controllers: [StreamController] }, perf: { compression } });

/** The one record. Its first byte came `atMost` so late, by the client's clock, which began earlier. */
async function recordOf(built: BuiltApp, atMostMs = Infinity) {
  const records = await recordsOf(built, 1);
  expect(records).toHaveLength(1);
  const [record] = records;
  const { firstByteMs, durationMs } = record!;
  if (firstByteMs !== null) {
    expect(firstByteMs).toBeGreaterThan(0);
    expect(firstByteMs).toBeLessThanOrEqual(Math.min(atMostMs, durationMs));
  }
  return record!;
}

describe.each(adapters)('`firstByteMs` on %s', (adapter) => {
  const cases: [what: string, path: string, finish: () => void, headers: string][] = [
    ['a stream', '/stream', () => void stream.end('last'), ''],
    ['a stream that is compressed', '/stream', () => void stream.end('last'), 'Accept-Encoding: gzip\r\n'],
    ['server-sent events', '/events', () => events.complete(), ''],
  ];
  it.each(cases)('of %s is when its head was sent, not when it ended', async (_what, path, finish, headers) => {
    const built = await start(adapter);
    const client = await RawClient.open(built.port);
    const startedMs = performance.now();
    client.get(path, headers);
    await client.until('\r\n\r\n');
    const headMs = performance.now() - startedMs;
    await sleep(GAP_MS);
    finish();
    // The end of what has no length.
    await client.until('0\r\n\r\n');
    const { firstByteMs, durationMs, outcome } = await recordOf(built, headMs);
    expect(outcome).toBe('completed');
    expect(durationMs - firstByteMs!).toBeGreaterThanOrEqual(GAP_MS - EARLY_MS);
  });

  it('leaves an object that the application derives from the response as it is', async () => {
    const built = await start(adapter, false);
    const response = await fetch(`${built.url}/derived`);
    expect([response.status, await response.text()]).toEqual([200, 'derived']);
    expect((await recordOf(built)).firstByteMs).not.toBeNull();
  });

  it('leaves a `writeHead` that another tool has put on the response', async () => {
    const built = await start(adapter);
    const server = built.app.getHttpServer() as Server;
    server.prependListener('request', (_request, response) => {
      const before = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
      const patched = (...head: unknown[]): void => {
        response.setHeader('x-tool', 'here');
        before(...head);
      };
      response.writeHead = patched as never;
    });
    const { headers } = await fetch(`${built.url}/json`);
    expect(headers.get('x-tool')).toBe('here');
    expect(await recordOf(built)).toMatchObject({ status: 200, firstByteMs: null });
  });

  it.each(['/json', '/nothing', '/nowhere'])('of GET and HEAD %s is within the request', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const built = await start(adapter);
      await (await fetch(`${built.url}${path}`, { method })).arrayBuffer();
      expect((await recordOf(built)).firstByteMs, method).not.toBeNull();
    }
  });

  it('is null where the client left before a head, whatever is written then', async () => {
    const built = await start(adapter, false);
    const client = await RawClient.open(built.port);
    client.get('/held');
    await until('the handler', () => isEntered);
    client.leave();
    const record = await recordOf(built);
    expect(record).toMatchObject({ route: '/held', status: 499, outcome: 'aborted', firstByteMs: null });
    release();
  });

  it('is null where the client left in the middle of its body, although the body parser answers', async () => {
    const built = await start(adapter);
    const client = await RawClient.open(built.port);
    client.send(
      'POST /body HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a":',
    );
    const { requests } = built.app.get<PerfApplication>(PerfApplication);
    await until('the request', () => requests.inFlight === 1);
    client.leave();
    expect(await recordOf(built)).toMatchObject({ status: 499, outcome: 'aborted', firstByteMs: null });
  });

  it('is there where the client left in the middle of the answer', async () => {
    const built = await start(adapter);
    const client = await RawClient.open(built.port);
    client.get('/stream');
    await client.until('first,');
    client.leave();
    const record = await recordOf(built);
    expect(record).toMatchObject({ status: 200, outcome: 'aborted' });
    expect(record.firstByteMs).not.toBeNull();
  });

  it('is that of the head that was sent, where Node has refused another one', async () => {
    const built = await start(adapter);
    expect(await (await fetch(`${built.url}/refused`)).text()).toBe('sent later');
    expect((await recordOf(built)).firstByteMs).toBeGreaterThanOrEqual(GAP_MS - EARLY_MS);
  });
});

it('`firstByteMs` is there for `inject()`', async () => {
  const built = await start('fastify');
  await (built.app as NestFastifyApplication).inject('/json');
  expect((await recordOf(built)).firstByteMs).not.toBeNull();
});

describe('`firstByteMs` over HTTP/2', () => {
  const open: ClientHttp2Session[] = [];
  afterEach(() => {
    for (const session of open.splice(0)) session.destroy();
  });
  async function startHttp2() {
    const adapter = adapterOf('fastify', { http2: true });
    const built = await listeningApp(adapter, { metadata: { controllers: [StreamController] } });
    const session = connectHttp2(built.url);
    open.push(session);
    await once(session, 'connect');
    return { built, session };
  }

  it.each<[what: string, path: string, finish: () => void]>([
    ['a stream', '/stream', () => void stream.end('last')],
    ['server-sent events', '/events', () => events.complete()],
  ])('of %s is when its head was sent, not when it ended', async (_what, path, finish) => {
    const { built, session } = await startHttp2();
    const startedMs = performance.now();
    const request = session.request({ ':path': path });
    await once(request, 'response');
    const headMs = performance.now() - startedMs;
    request.resume();
    await sleep(GAP_MS);
    finish();
    await once(request, 'close');
    const { firstByteMs, durationMs, outcome } = await recordOf(built, headMs);
    expect(outcome).toBe('completed');
    expect(durationMs - firstByteMs!).toBeGreaterThanOrEqual(GAP_MS - EARLY_MS);
  });

  it.each(['/json', '/nothing', '/nowhere'])('of %s is within the request', async (path) => {
    const { built, session } = await startHttp2();
    const request = session.request({ ':path': path });
    request.resume();
    await once(request, 'close');
    expect((await recordOf(built)).firstByteMs).not.toBeNull();
  });

  it('is null where the client left before a head', async () => {
    const { built, session } = await startHttp2();
    const request = session.request({ ':path': '/held' });
    request.on('error', () => {});
    await until('the handler', () => isEntered);
    request.close(http2.NGHTTP2_CANCEL);
    expect(await recordOf(built)).toMatchObject({ status: 499, outcome: 'aborted', firstByteMs: null });
    release();
  });
});
