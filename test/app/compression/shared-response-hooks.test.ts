import type * as http from 'node:http';
import type { ServerResponse } from 'node:http';
import { HttpException, type INestApplication } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { callAccepting } from '../../fixtures/http-client.js';
import { feed, FeedController, type Headered } from '../../fixtures/shared-feed.js';
import { until } from '../../fixtures/until.js';

type Handler = (...parameters: unknown[]) => Promise<unknown>;

describe.each(adapters)('@SharedResponse between middleware and hooks on %s', (adapter) => {
  let test: TestApp;
  const start = async (beforeInit: (app: INestApplication) => void): Promise<void> => {
    feed.handler = 0;
    test = await startApp(adapter, { metadata: { controllers: [FeedController] }, beforeInit });
  };
  afterEach(() => test.close());
  const get = (path: string, headers: Record<string, string> = {}) =>
    callAccepting(`${test.url}/${path}`, 'br', { headers });

  it('throws nothing that a tracer around the route would record, and runs interceptors for no hit', async () => {
    const thrown: unknown[] = [];
    let intercepted = 0;
    const prototype = RouterExecutionContext.prototype as unknown as Record<'create', (...given: unknown[]) => Handler>;
    const { create } = prototype;
    // As OpenTelemetry's instrumentation of Nest does it.
    prototype.create = function (...given) {
      const handler = create.apply(this, given);
      return async (...parameters) => {
        try {
          return await handler(...parameters);
        } catch (error) {
          thrown.push(error);
          throw error;
        }
      };
    };
    try {
      await start((app) => {
        app.useGlobalInterceptors({ intercept: (_context, next) => (intercepted++, next.handle()) });
      });
    } finally {
      prototype.create = create;
    }
    for (let i = 0; i < 4; i++) expect((await get('s/feed')).status).toBe(200);
    expect([feed.handler, intercepted, thrown]).toEqual([1, 1, []]);
    expect((await get('s/nothing-here')).status).toBe(404);
  });

  it('leaves a request alone that middleware has answered before', async () => {
    // Fastify runs no route for it.
    if (adapter === 'fastify') return;
    const thrown: unknown[] = [];
    await start((app) => {
      app.useGlobalFilters({ catch: (error: unknown) => void thrown.push(error) });
      app.use(({ headers }: http.IncomingMessage, response: ServerResponse, next: () => void) => {
        if (headers['x-late'] === undefined) return next();
        response.writeHead(503).end('late');
        response.once('close', next);
      });
    });
    expect((await get('s/feed')).status).toBe(200);
    expect((await get('s/feed', { 'x-late': '1' })).status).toBe(503);
    await until('the handler or an error', () => feed.handler === 2 || thrown.length > 0);
    expect(thrown.filter((error) => error instanceof TypeError)).toEqual([]);
  });

  it('keeps apart what a rewritten URL keeps apart', async () => {
    const rewritten = (tenant: unknown): string => `/s/tenant/${String(tenant)}`;
    const adapterWithRewrite: unknown = new FastifyAdapter({
      rewriteUrl: ({ headers }: http.IncomingMessage) => rewritten(headers['x-tenant']),
    });
    test = await startApp(adapter, {
      metadata: { controllers: [FeedController] },
      ...(adapter === 'fastify' ? { adapter: adapterWithRewrite as AbstractHttpAdapter } : {}),
      beforeInit: (app) => {
        if (adapter === 'fastify') return;
        app.use((request: http.IncomingMessage, _response: unknown, next: () => void) => {
          request.url = rewritten(request.headers['x-tenant']);
          next();
        });
      },
    });
    for (const tenant of ['a', 'b', 'a'])
      expect((await get('data', { 'x-tenant': tenant })).text).toBe(`{"tenant":"${tenant}"}`);
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
});
