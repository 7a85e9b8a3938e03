import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { request as send } from 'node:http';
import { PassThrough } from 'node:stream';
import {
  All,
  Controller,
  Get,
  Headers,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  Query,
  Req,
  Res,
  StreamableFile,
} from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defer, SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type Adapter, type TestApp } from '../../fixtures/app.js';
import { call, type ClientResponse } from '../../fixtures/http-client.js';
import { PlainAdapter } from '../../fixtures/plain-adapter.js';

interface Reply {
  header?(name: string, value: string): unknown;
  setHeader?(name: string, value: string): unknown;
  status?(status: number): unknown;
  statusCode?: number;
}
const put = (reply: Reply, name: string, value: string): unknown =>
  reply.header === undefined ? reply.setHeader!(name, value) : reply.header(name, value);

/** The caller of a request, as an application's own context holds it: a user, a transaction. */
const caller = new AsyncLocalStorage<string>();
let runs = 0;
let deferred: (string | undefined)[] = [];
let hang: Promise<unknown> = Promise.resolve();
let began: (() => void) | null = null;
let streams: PassThrough[] = [];

const TTL = { ttlMs: 60_000 };

@Controller('attacks')
class AttacksController {
  @Get('links')
  @SharedResponse(TTL)
  links(@Headers() headers: IncomingHttpHeaders): unknown {
    return { run: ++runs, self: `https://${String(headers['x-forwarded-host'] ?? headers.host)}/feed` };
  }

  @Get('body')
  @SharedResponse(TTL)
  body(@Req() request: { body?: unknown }): unknown {
    return { run: ++runs, body: request.body ?? null };
  }

  @Get('range')
  @SharedResponse(TTL)
  range(@Headers('range') range: string | undefined, @Res({ passthrough: true }) reply: Reply): unknown {
    runs += 1;
    if (range === undefined) return 'all of it';
    if (reply.status === undefined) reply.statusCode = 206;
    else reply.status(206);
    put(reply, 'content-range', 'bytes 0-2/9');
    return 'all';
  }

  @Get('query')
  @SharedResponse(TTL)
  query(@Query() query: object): unknown {
    return { run: ++runs, query };
  }

  @Get('cookie')
  @SharedResponse(TTL)
  cookie(@Res({ passthrough: true }) reply: Reply): unknown {
    put(reply, 'set-cookie', `session=${++runs}`);
    return { run: runs };
  }

  @Get('language')
  @SharedResponse(TTL)
  language(@Headers('accept-language') language: string, @Res({ passthrough: true }) reply: Reply): unknown {
    put(reply, 'vary', 'Accept-Language');
    return { run: ++runs, language };
  }

  @Get('slow')
  @SharedResponse({ ttlMs: 60_000, waitMs: 1_000 })
  async slow(): Promise<unknown> {
    const run = ++runs;
    const who = caller.getStore();
    began?.();
    if (run === 1) await hang;
    defer(() => void deferred.push(caller.getStore()));
    return { run, who, now: caller.getStore() };
  }

  @Get('stream')
  @SharedResponse({ ttlMs: 60_000, waitMs: 600_000 })
  async stream(): Promise<StreamableFile> {
    runs += 1;
    const lines = new PassThrough();
    streams.push(lines);
    began?.();
    await hang;
    lines.write('a line\n');
    return new StreamableFile(lines, { type: 'text/plain' });
  }

  @All('changes')
  changes(): unknown {
    return { changed: ++runs };
  }
}

const kinds = [...adapters, 'plain'] as const;

describe.each(kinds)('attacks on shared answers on %s', (kind) => {
  let test: TestApp;
  /** No test meets the answers that another one has made: its URLs are its own. */
  let nth = 0;
  beforeEach(() => {
    nth += 1;
    runs = 0;
    deferred = [];
    hang = Promise.resolve();
    began = null;
    streams = [];
  });
  beforeAll(async () => {
    const enter = (request: IncomingMessage, _response: ServerResponse, next: () => void): void => {
      const override = request.headers['x-http-method-override'];
      if (typeof override === 'string') request.method = override;
      caller.run(String(request.headers['x-caller']), next);
    };
    test = await startApp(kind as Adapter, {
      ...(kind === 'plain' ? { adapter: new PlainAdapter() } : {}),
      metadata: { controllers: [AttacksController] },
      beforeInit: (app: INestApplication) => {
        if (kind !== 'fastify') {
          app.use(enter);
          return;
        }
        (app.getHttpAdapter().getInstance() as FastifyInstance).addHook('onRequest', (request, reply, done) =>
          enter(request.raw, reply.raw, done),
        );
      },
    });
  });
  afterAll(() => test.close());
  const urlTo = (path: string): string => {
    const [name, query = ''] = path.split('?');
    return `${test.url}/attacks/${name}?test=${nth}&${query}`;
  };
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<ClientResponse> =>
    call(urlTo(path), { headers, method });
  const json = async (path: string, headers: Record<string, string> = {}): Promise<any> =>
    JSON.parse((await get(path, headers)).text);

  it.each([
    ['a subdomain', { host: 'a.shop.test' }, { host: 'b.shop.test' }],
    ['a forwarded host', { 'x-forwarded-host': 'evil.test' }, {}],
    ['a forwarded protocol', { 'x-forwarded-proto': 'http' }, {}],
    [
      'an empty forwarded host',
      { 'x-forwarded-host': '', 'x-forwarded-proto': 'https' },
      { 'x-forwarded-proto': 'https' },
    ],
    [
      'a host that reads as three',
      { host: 'a.test,b.test,https' },
      { host: 'a.test', 'x-forwarded-host': 'b.test', 'x-forwarded-proto': 'https' },
    ],
    ['a port', { host: 'shop.test:1' }, { host: 'shop.test' }],
    ['a session', { cookie: 'sid=1' }, { cookie: 'sid=2' }],
    ['a token', { authorization: 'Bearer 1' }, { authorization: 'Bearer 2' }],
  ] as [string, Record<string, string>, Record<string, string>][])(
    '%s of one caller is not in the answer of another',
    async (_what, one, two) => {
      const [first, second] = [await json('links', one), await json('links', two)];
      expect([first.run, second.run]).toEqual([1, 2]);
      expect(second.self).not.toBe(`https://${one['x-forwarded-host'] ?? one['host']}/feed`);
    },
  );

  it('a body of a GET, which a method override also makes, is in no answer of others', async () => {
    const fat = async (method: string, headers: Record<string, string>): Promise<number> => {
      const poison = '{"poison":true}';
      const all = { 'content-type': 'application/json', 'content-length': String(poison.length), ...headers };
      const request = send(urlTo('body'), { method, headers: all });
      request.end(poison);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      await response
        .resume()
        .on('end', () => {})
        .toArray();
      return response.statusCode ?? 0;
    };
    await fat('GET', {});
    // Fastify has found its route by then.
    if (kind !== 'fastify') await fat('POST', { 'x-http-method-override': 'GET' });
    const before = runs;
    const answer = await json('body');
    expect([before > 0 || kind === 'fastify', answer.run]).toEqual([true, before + 1]);
    expect(JSON.stringify(answer)).not.toContain('poison');
    expect(await json('body')).toEqual(answer);
  });

  it('another method by override gets the answer of that method', async () => {
    await json('links');
    if (kind === 'fastify') return;
    const { text } = await get('changes', { 'x-http-method-override': 'DELETE' });
    expect(JSON.parse(text)).toEqual({ changed: 2 });
  });

  it('a part is kept for nobody', async () => {
    const part = await get('range', { range: 'bytes=0-2' });
    const all = [await get('range'), await get('range'), await get('range', { range: 'bytes=0-2' })];
    expect([part.text, part.headers['content-range'], ...all.map(({ text }) => text)]).toEqual([
      'all',
      'bytes 0-2/9',
      'all of it',
      'all of it',
      'all of it',
    ]);
    expect([runs, all[0]!.headers['content-range']]).toEqual([2, undefined]);
  });

  it.skipIf(kind === 'plain')('a HEAD makes no answer for others, and gets none', async () => {
    const head = await get('links', {}, 'HEAD');
    expect([head.status, head.raw.byteLength]).toEqual([200, 0]);
    const { run } = await json('links');
    expect((await get('links', {}, 'HEAD')).status).toBe(200);
    expect([run, runs]).toEqual([2, 3]);
  });

  it('a query in another order, or with a name twice, is another URL', async () => {
    const queries = ['a=1&b=2', 'b=2&a=1', 'a=1&a=2', 'a=1&b=2&'];
    for (const [i, query] of queries.entries()) expect((await json(`query?${query}`)).run).toBe(i + 1);
    for (const [i, query] of queries.entries()) expect((await json(`query?${query}`)).run).toBe(i + 1);
  });

  it('a cookie that is set, and a language that it varies with, are for their own caller', async () => {
    const cookies = [await get('cookie'), await get('cookie')];
    expect(cookies.map(({ headers }) => headers['set-cookie'])).toEqual([['session=1'], ['session=2']]);
    const languages = [
      await json('language', { 'accept-language': 'de' }),
      await json('language', { 'accept-language': 'it' }),
    ];
    expect(languages.map(({ language }) => language)).toEqual(['de', 'it']);
  });

  it('a handler that never resolves holds a caller for `waitMs`, who then runs it in a context of its own', async () => {
    hang = new Promise(() => {});
    const running = new Promise<void>((resolve) => (began = resolve));
    const leader = send(urlTo('slow'), { headers: { 'x-caller': 'leader' } });
    leader.on('error', () => {});
    leader.end();
    await running;
    const answers = await Promise.all(['one', 'two'].map((who) => json('slow', { 'x-caller': who })));
    expect(answers).toMatchObject([
      { who: 'one', now: 'one' },
      { who: 'two', now: 'two' },
    ]);
    leader.destroy();
    await expect.poll(() => new Set(deferred)).toEqual(new Set(['one', 'two']));
  });

  it('whoever waits for what turns out to be a stream does not wait for its end', async () => {
    let release!: () => void;
    hang = new Promise<void>((resolve) => (release = resolve));
    const running = new Promise<void>((resolve) => (began = resolve));
    const first = get('stream');
    await running;
    const second = get('stream');
    release();
    await expect.poll(() => runs).toBe(2);
    for (const stream of streams) stream.end();
    expect([(await first).text, (await second).text]).toEqual(['a line\n', 'a line\n']);
  });

  it('whoever takes over from a client that has left runs the handler as itself, once', async () => {
    hang = new Promise(() => {});
    let running = new Promise<void>((resolve) => (began = resolve));
    const leader = send(urlTo('slow'), { headers: { 'x-caller': 'leader' } });
    leader.on('error', () => {});
    leader.end();
    await running;
    running = new Promise((resolve) => (began = resolve));
    const waiter = json('slow', { 'x-caller': 'waiter' });
    leader.destroy();
    await running;
    const { who, now, run } = await waiter;
    expect([who, now, run, runs]).toEqual(['waiter', 'waiter', 2, 2]);
    await expect.poll(() => deferred).toEqual(['waiter']);
  });

  it('a hit runs neither the handler nor its deferred work', async () => {
    const first = await json('slow', { 'x-caller': 'one' });
    expect(await json('slow', { 'x-caller': 'two' })).toEqual(first);
    await expect.poll(() => deferred).toEqual(['one']);
    expect(runs).toBe(1);
  });
});

/** The rest of a request that waits for the next one, as behind a session store that calls back on one shared connection. */
let goOn: (() => void) | null = null;

@Controller('crossed')
class CrossedController {
  @Get('shared')
  @SharedResponse(TTL)
  shared(): unknown {
    return { of: 'all' };
  }
  @Get('mine')
  async mine(): Promise<unknown> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    return { of: 'me alone' };
  }
}

@Module({})
class CrossingModule {
  configure(consumer: MiddlewareConsumer): void {
    const cross = ({ originalUrl }: { originalUrl: string }, _response: unknown, next: () => void): void => {
      if (goOn === null && originalUrl.endsWith('shared')) goOn = next;
      else {
        goOn?.();
        next();
      }
    };
    consumer.apply(cross).forRoutes(CrossedController);
  }
}

it('a request that a callback lets go on in the context of another shares no answer of that one', async () => {
  goOn = null;
  const test = await startApp('express', { metadata: { controllers: [CrossedController], imports: [CrossingModule] } });
  const first = call(`${test.url}/crossed/shared`);
  await expect.poll(() => goOn).not.toBeNull();
  const mine = await call(`${test.url}/crossed/mine`);
  const later = await call(`${test.url}/crossed/shared`);
  expect([await first, mine, later].map(({ text }) => JSON.parse(text))).toEqual([
    { of: 'all' },
    { of: 'me alone' },
    { of: 'all' },
  ]);
  await test.close();
});
