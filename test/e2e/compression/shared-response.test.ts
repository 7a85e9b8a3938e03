import * as http from 'node:http';
import type { ServerResponse } from 'node:http';
import {
  applyDecorators,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  HostParam,
  HttpException,
  type INestApplication,
  Injectable,
  Logger,
  type NestInterceptor,
  Param,
  Post,
  Req,
  Res,
  Scope,
  Sse,
  StreamableFile,
  UseFilters,
  UseGuards,
  UseInterceptors,
  Catch,
} from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { map, of, type Observable } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NoCompression, PerfService, SharedResponse } from '../../../src/index.js';
import { settle } from '../../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

const realNow = performance.now.bind(performance);
/** Moves the process's clock on. */
function later(ms: number): void {
  vi.spyOn(performance, 'now').mockImplementation(() => realNow() + ms);
}

const counts = { handler: 0, interceptor: 0, guard: 0 };
let hold: Promise<void> | null = null;
let fails = false;

@Injectable()
class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    counts.guard += 1;
    return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-token'] !== 'bad';
  }
}

class Envelope implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    counts.interceptor += 1;
    return next.handle().pipe(map((data: unknown) => ({ data })));
  }
}

@Catch()
class CatchAll {
  catch(): never {
    throw new Error('must never see the shared answer');
  }
}

type Headered = { headers: Record<string, string> };
interface Removing {
  removeHeader(name: string): unknown;
}
interface Reply {
  header(name: string, value: string): unknown;
}

@Controller('s')
class FeedController {
  // Above the guard: whatever the order, every other guard decides first.
  @Get('feed')
  @UseGuards(TokenGuard)
  @SharedResponse({ ttlMs: 60_000 })
  @UseInterceptors(new Envelope())
  async feed(): Promise<unknown> {
    counts.handler += 1;
    await hold;
    if (fails) throw new HttpException('no feed', 503);
    return { version: counts.handler, rows: rows(50_000) };
  }

  @SharedResponse({ ttlMs: 60_000 })
  @UseGuards(TokenGuard)
  @UseFilters(new CatchAll())
  @Get('guarded')
  guarded(): unknown {
    counts.handler += 1;
    return { version: counts.handler };
  }

  // The other way round: a catch-all filter of the handler that Nest would ask first.
  @UseFilters(new CatchAll())
  @SharedResponse({ ttlMs: 60_000 })
  @Get('caught')
  caught(): unknown {
    counts.handler += 1;
    return { version: counts.handler };
  }

  @Get('by-language')
  @SharedResponse({ ttlMs: 60_000, varyBy: ({ headers }) => headers['accept-language'] ?? '' })
  byLanguage(@Req() request: Headered): unknown {
    counts.handler += 1;
    return { language: request.headers['accept-language'], rows: rows(5_000) };
  }

  @Get('text')
  @SharedResponse({ ttlMs: 60_000 })
  text(@Res({ passthrough: true }) reply: Reply): string {
    counts.handler += 1;
    reply.header('x-feed', `v${counts.handler}`);
    return 'shared '.repeat(1_000);
  }

  @Get('buffer')
  @SharedResponse({ ttlMs: 60_000 })
  buffer(@Res() reply: Reply & { send(body: Buffer): unknown }): void {
    counts.handler += 1;
    reply.header('content-type', 'text/csv');
    reply.send(Buffer.from('a;b;c\n'.repeat(2_000)));
  }

  @Get('tenant/:name')
  @SharedResponse({ ttlMs: 60_000 })
  tenant(@Param('name') tenant: string): unknown {
    return { tenant };
  }

  @Get('english')
  @SharedResponse({ ttlMs: 60_000, varyBy: () => '' })
  english(@Res({ passthrough: true }) reply: Reply & { getHeader(name: string): string | undefined }): unknown {
    counts.handler += 1;
    reply.header('content-language', 'en');
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? 'Accept-Language' : `${vary}, Accept-Language`);
    return { n: counts.handler, rows: rows(5_000) };
  }

  @Get('dated')
  @SharedResponse({ ttlMs: 60_000 })
  dated(@Res({ passthrough: true }) reply: Reply): unknown {
    counts.handler += 1;
    reply.header('last-modified', 'Fri, 27 Nov 2026 12:00:00 GMT');
    return { n: counts.handler, rows: rows(5_000) };
  }

  @Get('embeddable')
  @SharedResponse({ ttlMs: 60_000 })
  embeddable(@Res({ passthrough: true }) reply: Removing & { raw?: Removing }): unknown {
    counts.handler += 1;
    (reply.raw ?? reply).removeHeader('x-frame-options');
    return { n: counts.handler };
  }

  @Get('stream')
  @SharedResponse({ ttlMs: 60_000 })
  stream(): StreamableFile {
    counts.handler += 1;
    return new StreamableFile(Buffer.from('x'.repeat(5_000)), { type: 'text/plain' });
  }
}

@Controller({ path: 'tenant', host: ':tenant.test' })
class TenantController {
  @Get()
  @SharedResponse({ ttlMs: 60_000 })
  one(@HostParam('tenant') tenant: string): unknown {
    counts.handler += 1;
    return { tenant };
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController {
  @Get()
  @SharedResponse({ ttlMs: 60_000 })
  one(): unknown {
    counts.handler += 1;
    return { n: counts.handler };
  }
}

describe.each(adapters)('@SharedResponse on %s', (adapter) => {
  let test: TestApp;
  const start = async (beforeInit?: (app: INestApplication) => void): Promise<void> => {
    Object.assign(counts, { handler: 0, interceptor: 0, guard: 0 });
    hold = null;
    fails = false;
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
    hold = new Promise((resolve) => (release = resolve));
    const calls = Array.from({ length: 50 }, () => get('s/feed'));
    await expect.poll(() => counts.guard).toBe(50);
    release();
    const responses = await Promise.all(calls);
    expect(counts).toEqual({ handler: 1, interceptor: 1, guard: 50 });
    const wanted = JSON.stringify({ data: { version: 1, rows: rows(50_000) } });
    for (const { status, text, headers } of responses) {
      expect([status, text === wanted, headers['content-encoding']]).toEqual([200, true, 'br']);
      expect(headers['content-type']).toMatch(/^application\/json/);
      expect(headers.etag).toBe(responses[0]!.headers.etag);
    }
    await settle(test.app);
    const stats = test.app.get(PerfService).snapshot().compression!;
    expect(stats).toMatchObject({ responses: 50, compressed: 50, cacheHits: 49 });
    expect(stats.routes).toMatchObject([{ method: 'GET', route: '/s/feed', compressed: 50, cacheHits: 49 }]);
    expect(stats.bytesIn).toBe(50 * wanted.length);
    expect(stats.cacheBytes).toBeGreaterThan(wanted.length);
  });

  it('makes a new answer after the TTL, and serves the old one while it is made', async () => {
    await start();
    expect((await get('s/feed')).text).toContain('"version":1');
    expect((await get('s/feed')).text).toContain('"version":1');
    let release!: () => void;
    hold = new Promise((resolve) => (release = resolve));
    later(61_000);
    const refreshing = get('s/feed');
    await expect.poll(() => counts.handler).toBe(2);
    expect((await get('s/feed')).text).toContain('"version":1');
    release();
    expect((await refreshing).text).toContain('"version":2');
    expect((await get('s/feed')).text).toContain('"version":2');
    expect(counts.handler).toBe(2);
  });

  it('never keeps an error', async () => {
    await start();
    fails = true;
    expect((await get('s/feed')).status).toBe(503);
    expect((await get('s/feed')).status).toBe(503);
    expect(counts.handler).toBe(2);
    fails = false;
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
    expect(counts.handler).toBe(2);
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
    expect(counts.handler).toBe(2);
    await get('s/by-language?a=1', { 'accept-language': 'de' });
    expect(counts.handler).toBe(3);
  });

  it('tells hosts apart where the controller has them', async () => {
    await start();
    for (let again = 0; again < 2; again++) {
      for (const tenant of ['a', 'b'])
        expect((await get('tenant', { host: `${tenant}.test` })).text).toBe(`{"tenant":"${tenant}"}`);
    }
    expect(counts.handler).toBe(2);
    await get('s/by-language', { host: 'a.test' });
    await get('s/by-language', { host: 'b.test' });
    expect(counts.handler).toBe(3);
  });

  it.each(['s/text', 's/buffer'])(
    'repeats body and headers of %s to clients of every coding, HEAD and 304',
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
      expect(counts.handler).toBe(1);
      const head = await callAccepting(`${test.url}/${path}`, 'br', { method: 'HEAD' });
      expect(head.headers['content-encoding']).toBe('br');
      expect(head.headers['content-length']).toBe(first.headers['content-length']);
    },
  );

  it('removes from every answer what the handler has removed', async () => {
    const helmet = (_: unknown, response: ServerResponse, next: () => void): void => {
      response.setHeader('x-frame-options', 'DENY');
      next();
    };
    await start((app) => void app.use(helmet));
    expect((await get('s/buffer')).headers['x-frame-options']).toBe('DENY');
    for (const text of ['{"n":2}', '{"n":2}']) {
      const { headers, text: body } = await get('s/embeddable');
      expect([body, headers['x-frame-options']]).toEqual([text, undefined]);
    }
    expect((await get('s/buffer')).headers['x-frame-options']).toBe('DENY');
  });

  it('keeps apart what a rewritten URL keeps apart', async () => {
    const rewritten = (host: unknown): string => `/s/tenant/${String(host).replace(/:.*/, '')}`;
    const adapterWithRewrite: unknown = new FastifyAdapter({
      rewriteUrl: ({ headers }: http.IncomingMessage) => rewritten(headers.host),
    });
    test = await startApp(adapter, {
      metadata: { controllers: [FeedController] },
      ...(adapter === 'fastify' ? { adapter: adapterWithRewrite as AbstractHttpAdapter } : {}),
      beforeInit: (app) => {
        if (adapter === 'fastify') return;
        app.use((request: http.IncomingMessage, _response: unknown, next: () => void) => {
          request.url = rewritten(request.headers.host);
          next();
        });
      },
    });
    for (const host of ['a.test', 'b.test', 'a.test'])
      expect((await get('data', { host })).text).toBe(`{"tenant":"${host}"}`);
  });

  it('gives what a later hook has made of it: the error of one that refuses', async () => {
    if (adapter !== 'fastify') return;
    await start((app) => {
      const fastify = app.getHttpAdapter().getInstance() as {
        addHook(name: 'onSend', hook: (request: Headered, reply: { statusCode: number }) => Promise<unknown>): void;
      };
      fastify.addHook('onSend', async ({ headers }, { statusCode }) => {
        if (headers['x-token'] === 'none' && statusCode === 200) throw new HttpException('not for you', 403);
        return undefined;
      });
    });
    expect((await get('s/feed')).status).toBe(200);
    const refused = await get('s/feed', { 'x-token': 'none' });
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('not for you')]);
  });

  it('repeats what tells of the body, and adds to `Vary` what the handler has added', async () => {
    await start((app) => {
      app.use(({ headers }: http.IncomingMessage, response: ServerResponse, next: () => void) => {
        response.setHeader('content-language', headers['accept-language'] ?? 'en');
        if (headers.origin !== undefined) response.setHeader('vary', 'Origin');
        next();
      });
    });
    expect((await get('s/english')).headers).toMatchObject({ 'content-language': 'en' });
    const { headers, text } = await get('s/english', { 'accept-language': 'de', origin: 'https://a.example' });
    expect([headers['content-language'], text.includes('"n":1')]).toEqual(['en', true]);
    expect(String(headers.vary).toLowerCase().split(', ').toSorted()).toEqual([
      'accept-encoding',
      'accept-language',
      'origin',
    ]);
  });

  it('answers 304 to who has it since it was modified', async () => {
    await start();
    const since = { 'if-modified-since': 'Sat, 28 Nov 2026 00:00:00 GMT' };
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) statuses.push((await get('s/dated', i === 0 ? {} : since)).status);
    statuses.push((await get('s/dated', { 'if-modified-since': 'Fri, 27 Nov 2026 00:00:00 GMT' })).status);
    expect(statuses).toEqual([200, 304, 304, 200]);
    expect(counts.handler).toBe(1);
  });

  it('runs the handler of a stream for everybody', async () => {
    await start();
    const answers = await Promise.all([get('s/stream'), get('s/stream'), get('s/stream')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(counts.handler).toBe(3);
  });

  it.each(['br', 'identity'])('makes the next answer from a client that has it already as %s', async (coding) => {
    await start();
    const text = await callAccepting(`${test.url}/s/text`, coding);
    const etag = String(text.headers.etag);
    later(61_000);
    const refreshing = await callAccepting(`${test.url}/s/text`, coding, { headers: { 'if-none-match': etag } });
    expect([refreshing.status, refreshing.raw.byteLength, refreshing.headers.etag]).toEqual([304, 0, etag]);
    const handled = counts.handler;
    expect((await callAccepting(`${test.url}/s/text`, coding)).text).toBe(text.text);
    expect(counts.handler).toBe(handled);
  });

  it('works in request-scoped controllers', async () => {
    await start();
    expect((await get('scoped')).text).toBe('{"n":1}');
    expect((await get('scoped')).text).toBe('{"n":1}');
  });

  it('does not wait for ever when the client that makes the answer leaves', async () => {
    await start();
    let release!: () => void;
    hold = new Promise((resolve) => (release = resolve));
    const leader = http.get(`${test.url}/s/feed`, { agent: false }).on('error', () => {});
    await expect.poll(() => counts.handler).toBe(1);
    const follower = get('s/feed');
    await expect.poll(() => counts.guard).toBe(2);
    leader.destroy();
    await expect.poll(() => counts.handler).toBe(2);
    release();
    expect((await follower).status).toBe(200);
  });
});

describe('@SharedResponse at boot', () => {
  class PostController {
    all(): void {}
  }
  class EventsController {
    all(): Observable<never> {
      return of();
    }
  }
  class NoRouteController {
    all(): void {}
  }
  const decorate = (target: Function, decorators: MethodDecorator[]): void => {
    const descriptor = Object.getOwnPropertyDescriptor(target.prototype, 'all')!;
    for (const decorator of decorators) decorator(target.prototype as object, 'all', descriptor);
    Controller('x')(target);
  };
  decorate(PostController, [SharedResponse({ ttlMs: 1 }), Post()]);
  decorate(NoRouteController, [SharedResponse({ ttlMs: 1 })]);
  decorate(EventsController, [SharedResponse({ ttlMs: 1 }), Sse()]);

  it.each([
    [PostController, 'PostController.all', 'POST'],
    [EventsController, 'EventsController.all', '@Sse()'],
    [NoRouteController, 'NoRouteController.all', 'no route'],
  ])('stops on anything but GET, also while it shares nothing: $name', async (controller, name, given) => {
    for (const perf of [{}, { compression: false }, { enabled: false }]) {
      await expect(startApp('fastify', { perf, metadata: { controllers: [controller] } })).rejects.toThrow(
        `PERF_ERR_DECORATOR: @SharedResponse() on "${name}" needs a GET handler, got ${given}. ` +
          'Only what is read can be shared: remove the decorator, or move it to the GET handler that serves the data.',
      );
    }
  });

  it('stops on a second one, also within a composed decorator', () => {
    class TwiceController {
      all(): void {}
    }
    const composed = applyDecorators(Get(), SharedResponse({ ttlMs: 60_000 })) as MethodDecorator;
    expect(() => decorate(TwiceController, [composed, SharedResponse({ ttlMs: 30_000 })])).toThrow(
      'PERF_ERR_DECORATOR: @SharedResponse() stands on "TwiceController.all" twice, and one must say how its answer is shared. ' +
        'Remove the other, which may be part of a composed decorator.',
    );
  });

  class OpenController {
    all(): unknown {
      counts.handler += 1;
      return rows(5_000);
    }
  }
  decorate(OpenController, [SharedResponse({ ttlMs: 60_000 }), NoCompression(), Get()]);
  @Controller('inherits')
  class InheritingController extends OpenController {}

  it.each(adapters)(
    'on %s says that it shares nothing with `compression: false`, and how to share unencoded',
    async (adapter) => {
      const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
      const metadata = { controllers: [OpenController, InheritingController] };
      const ask = async (compression: boolean): Promise<number> => {
        counts.handler = 0;
        const test = await startApp(adapter, { perf: { compression }, metadata });
        for (let i = 0; i < 3; i++) {
          const response = await callAccepting(`${test.url}/x`, 'gzip');
          expect(response.headers['content-encoding']).toBeUndefined();
          expect(response.text).toBe(JSON.stringify(rows(5_000)));
        }
        await test.close();
        return counts.handler;
      };
      expect(await ask(false)).toBe(3);
      expect(warn).toHaveBeenCalledWith(
        '@SharedResponse() on OpenController.all, InheritingController.all shares nothing: `compression: false` has switched off what it needs. ' +
          'Remove that option, or the decorator. To send a shared answer unencoded, put @NoCompression() beside it.',
      );
      warn.mockClear();
      expect(await ask(true)).toBe(1);
      expect(warn).not.toHaveBeenCalledWith(expect.stringContaining('shares nothing'));
    },
  );
});
