import type { ServerResponse } from 'node:http';
import { Controller, Get, Query, Res, UseInterceptors, type CallHandler, type NestInterceptor } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { map, type Observable } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PerfService } from '../../../src/index.js';
import { type Adapter, startApp, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

const feed = { version: 0, rows: rows(60_000) };

class Envelope implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ data })));
  }
}

interface ExpressResponse extends ServerResponse {
  set(name: string, value: string): ExpressResponse;
  json(value: unknown): void;
}

interface Reply {
  type(type: string): Reply;
  serializer(serialise: (value: unknown) => string): Reply;
  serialize(value: unknown): string;
  send(value: unknown): unknown;
}

@Controller('feed')
class FeedController {
  @Get()
  feed(): unknown {
    return feed;
  }

  @Get('enveloped')
  @UseInterceptors(new Envelope())
  enveloped(): unknown {
    return feed;
  }

  @Get('tagged')
  tagged(@Res() response: ExpressResponse): void {
    const length = Buffer.byteLength(JSON.stringify(feed)).toString(16);
    response.set('ETag', `W/"${length}-AAAAAAAAAAAAAAAAAAAAAAAAAAA"`).json(feed);
  }

  @Get('late')
  late(@Res() response: ExpressResponse): void {
    response.set('X-Kept', 'yes').json({ i: feed.version, feed });
    response.statusCode = 500;
    expect(() => response.removeHeader('X-Kept')).toThrow(/after they are sent/);
    response.flushHeaders();
  }

  @Get('either')
  either(@Query('as') as: string, @Res() reply: Reply): void {
    if (as === 'lines') reply.type('application/json').serializer((value) => JSON.stringify(value, null, 1));
    reply.send(feed);
  }

  @Get('bytes')
  bytes(@Res() reply: Reply): void {
    const text = reply.serialize(feed);
    expect(typeof text).toBe('string');
    reply.type('application/json').send(Buffer.from(text));
  }
}

interface ExpressApplication {
  readonly response: Record<'json' | 'send', (this: object, body: unknown) => unknown>;
  set(setting: string, value: unknown): void;
  use(middleware: (request: unknown, response: { send: (body: unknown) => unknown }, next: () => void) => void): void;
}

/** Serialisations of the feed; small things are of no interest. */
function countSerialisations(): () => number {
  const stringify = vi.spyOn(JSON, 'stringify');
  return () => {
    const count = stringify.mock.results.filter(({ value }) => String(value).length > 30_000).length;
    stringify.mockClear();
    return count;
  };
}

let test: TestApp;
async function startFeed(adapter: Adapter, main?: (instance: any) => void): Promise<void> {
  feed.version += 1;
  test = await startApp(adapter, {
    metadata: { controllers: [FeedController] },
    beforeInit: (app) => main?.(app.getHttpAdapter().getInstance()),
  });
}
afterEach(async () => {
  vi.restoreAllMocks();
  await test.close();
});

describe('a large body that is the same again, on fastify', () => {
  const start = (main?: (fastify: FastifyInstance) => void): Promise<void> => startFeed('fastify', main);
  const get = async (path: string): Promise<string> => (await callAccepting(`${test.url}/${path}`, 'br')).text;
  it.each(['feed', 'feed/enveloped'])('is compared instead of serialised: %s', async (path) => {
    await start();
    const wanted = JSON.stringify(path === 'feed' ? feed : { data: feed });
    for (let i = 0; i < 4; i++) expect(await get(path)).toBe(wanted);
    const serialisations = countSerialisations();
    for (let i = 0; i < 5; i++) expect(await get(path)).toBe(wanted);
    expect(serialisations()).toBe(0);
    expect(test.app.get(PerfService).snapshot().compression!.cacheHits).toBe(8);
  });

  it('is never served as it was before it was changed in place', async () => {
    await start();
    for (let i = 0; i < 30; i++) {
      if (i % 6 === 5) feed.rows[1_000]!.callsign = `FLT-${i}`;
      expect(await get('feed')).toBe(JSON.stringify(feed));
    }
  });

  it('is changed by the hooks of the application, before and after', async () => {
    let stamp = 0;
    await start((fastify) => {
      fastify.addHook('onRoute', (route) => {
        if (route.url !== '/feed') return;
        route.preSerialization = [
          async (_request, _reply, payload) => ({ ...(payload as object), stamp: (stamp += 1) }),
        ];
      });
    });
    for (let i = 1; i < 8; i++) expect(await get('feed')).toBe(JSON.stringify({ ...feed, stamp: i }));
  });

  it('fails as ever where a hook fails', async () => {
    await start((fastify) => {
      fastify.addHook('onRoute', (route) => {
        if (route.url !== '/feed') return;
        route.preSerialization = [
          async (request, _reply, payload) => {
            if (request.headers['x-fail'] !== undefined && 'version' in (payload as object)) throw new Error('hook');
            return payload;
          },
        ];
      });
    });
    const failing = { headers: { 'x-fail': '1' } };
    const first = await callAccepting(`${test.url}/feed`, 'br', failing);
    for (let i = 0; i < 5; i++) await get('feed');
    const again = await callAccepting(`${test.url}/feed`, 'br', failing);
    expect(first.status).toBe(500);
    expect({ ...again.headers, date: '' }).toEqual({ ...first.headers, date: '' });
    expect([again.status, again.text]).toEqual([first.status, first.text]);
    expect(await get('feed')).toBe(JSON.stringify(feed));
  });

  it("is left to the application's own serialisers", async () => {
    await start();
    for (let i = 0; i < 4; i++) expect(await get('feed/either?as=json')).toBe(JSON.stringify(feed));
    for (let i = 0; i < 4; i++) expect(await get('feed/either?as=lines')).toBe(JSON.stringify(feed, null, 1));
    expect(await get('feed/either?as=json')).toBe(JSON.stringify(feed));
  });

  it('is text for `reply.serialize()`, whatever the route sends', async () => {
    await start();
    for (let i = 0; i < 8; i++) expect(await get('feed/bytes')).toBe(JSON.stringify(feed));
  });

  it('is left to the serialiser of the instance, and to the schema of a route', async () => {
    const lines = JSON.stringify(feed.rows, null, 1);
    await start((fastify) => {
      fastify.setReplySerializer((payload) => JSON.stringify((payload as typeof feed).rows, null, 1));
    });
    for (let i = 0; i < 8; i++) expect(await get('feed')).toBe(lines);
    await test.close();
    await start((fastify) => {
      fastify.addHook('onRoute', (route) => {
        if (route.url !== '/feed') return;
        route.schema = { response: { 200: { type: 'object', properties: { rows: {} } } } };
      });
    });
    for (let i = 0; i < 8; i++) expect(await get('feed')).toBe(JSON.stringify({ rows: feed.rows }));
  });
});

describe('a large body that is the same again, on express', () => {
  const start = (main?: (express: ExpressApplication) => void): Promise<void> => startFeed('express', main);
  const get = (path: string, headers = {}) => callAccepting(`${test.url}/${path}`, 'br', { headers });
  it.each(['feed', 'feed/enveloped'])('is compared instead of serialised: %s', async (path) => {
    await start();
    const wanted = JSON.stringify(path === 'feed' ? feed : { data: feed });
    const first = await get(path);
    for (let i = 0; i < 3; i++) expect((await get(path)).text).toBe(wanted);
    const serialisations = countSerialisations();
    for (let i = 0; i < 5; i++) {
      const { status, headers, text } = await get(path);
      expect([status, text]).toEqual([200, wanted]);
      // The hot level has another tag and length.
      const { date, etag, 'content-length': length, ...others } = headers;
      const { date: firstDate, etag: firstTag, 'content-length': firstLength, ...firstOthers } = first.headers;
      expect(others).toEqual(firstOthers);
      expect([date, length, firstDate, firstLength].every((value) => value !== undefined)).toBe(true);
      expect(etag?.split(';')[0]).toBe(firstTag?.split(';')[0]);
      expect((await get(path, { 'if-none-match': String(etag) })).status).toBe(304);
    }
    expect(serialisations()).toBe(0);
  });

  it('is never served as it was before it was changed in place', async () => {
    await start();
    for (let i = 0; i < 30; i++) {
      if (i % 6 === 5) feed.rows[1_000]!.callsign = `FLT-${i}`;
      const { text, headers } = await get('feed');
      expect(text).toBe(JSON.stringify(feed));
      if (i % 6 === 5) expect((await get('feed', { 'if-none-match': String(headers['etag']) })).status).toBe(304);
    }
  });

  it.each([
    ['json spaces', 1, () => JSON.stringify(feed, null, 1)],
    ['json replacer', ['version'], () => JSON.stringify(feed, ['version'])],
  ])("is left to the application's own `%s`", async (setting, value, wanted) => {
    await start((express) => express.set(setting, value));
    for (let i = 0; i < 6; i++) expect((await get('feed')).text).toBe(wanted());
  });

  it('is text for middleware that has replaced `send`', async () => {
    const seen: string[] = [];
    await start((express) =>
      express.use((_request, response, next) => {
        const { send } = response;
        response.send = function (this: unknown, body: unknown) {
          seen.push(typeof body);
          return send.call(this, body);
        };
        next();
      }),
    );
    for (let i = 0; i < 6; i++) expect((await get('feed')).text).toBe(JSON.stringify(feed));
    expect(seen).toEqual(Array.from({ length: 6 }, () => 'string'));
  });

  it.each(['json', 'send'] as const)("passes an application's own `%s` on Express's prototype", async (name) => {
    let changes = false;
    await start(({ response }) => {
      const replaced = response[name];
      response[name] = function (this: object, body: unknown) {
        if (!changes || (name === 'send' && typeof body !== 'string')) return replaced.call(this, body);
        return replaced.call(this, name === 'json' ? { enveloped: body } : `${String(body)}\n`);
      };
    });
    const [plain, changed] = [feed, name === 'json' ? { enveloped: feed } : feed].map((value) => JSON.stringify(value));
    for (let i = 0; i < 6; i++) expect((await get('feed')).text).toBe(plain);
    changes = true;
    expect((await get('feed')).text.trimEnd()).toBe(changed);
    expect((await get('feed')).text.endsWith('\n')).toBe(name === 'send');
  });

  it("has Express's tag, whatever another route has put on the same content, and none where tags are off", async () => {
    await start();
    const { etag } = (await get('feed')).headers;
    for (let i = 0; i < 6; i++) {
      await get('feed/tagged');
      expect((await get('feed')).headers['etag']?.split(';')[0]).toBe(etag?.split(';')[0]);
    }
    await test.close();
    await start((express) => express.set('etag', false));
    for (let i = 0; i < 6; i++) expect((await get('feed')).headers['etag']).toBeUndefined();
  });

  it('is what the handler answered with, whatever it does once it has', async () => {
    await start();
    for (let i = 0; i < 3; i++) {
      const { status, headers, text } = await get('feed/late');
      expect([status, headers['x-kept'], text]).toEqual([200, 'yes', JSON.stringify({ i: feed.version, feed })]);
      feed.version += 1;
    }
  });
});
