import type { Server } from 'node:http';
import { Controller, Get, Header, type INestApplication } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { startApp, type Adapter, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { call, type ClientResponse } from '../../fixtures/http-client.js';
import { middlewares, permute, plugins } from '../../fixtures/layers.js';

@Controller('packages')
class PackagesController {
  @Get('rows')
  rows(): unknown {
    return rows(20_000);
  }

  @Get('shared')
  @SharedResponse({ ttlMs: 60_000, forEveryone: true })
  shared(): unknown {
    return rows(20_000);
  }

  @Get('small')
  @Header('cache-control', 'private')
  small(): unknown {
    return { id: 42 };
  }
}

type Layer = keyof typeof middlewares | keyof typeof plugins;

async function add(app: INestApplication, adapter: Adapter, layers: readonly Layer[]): Promise<void> {
  const fastify = app.getHttpAdapter().getInstance() as FastifyInstance;
  for (const layer of layers) {
    if (layer in plugins) await fastify.register(plugins[layer as keyof typeof plugins] as never);
    else if (adapter === 'express') app.use(middlewares[layer as keyof typeof middlewares]());
    else {
      const middleware = middlewares[layer as keyof typeof middlewares]();
      fastify.addHook('onRequest', (request, reply, done) => middleware(request.raw, reply.raw, done as never));
    }
  }
}

const REQUESTS = [
  ['rows', 'br'],
  ['rows', 'gzip'],
  ['rows', 'identity'],
  ['rows', 'br'],
  ['shared', 'gzip'],
  ['shared', 'identity'],
  ['shared', 'gzip'],
  ['small', 'br'],
] as const;

/** The parts of an answer that no coding changes; `tagged`: the application gives a tag itself. */
function readable({ status, headers, text }: ClientResponse, tagged: boolean): unknown {
  const { 'content-encoding': _coding, 'content-length': _length, etag, vary: _vary, date: _date, ...rest } = headers;
  const { 'transfer-encoding': _framing, 'set-cookie': cookies, 'cache-control': control, ...same } = rest;
  return {
    status,
    text,
    same,
    etag: tagged ? etag?.replace(/;{1,2}(?:br|gzip|zstd)"$/, '"').replace(/^W\//, '') : null,
    // A session's id is drawn, and apicache's age is that of its entry.
    cookies: cookies?.length,
    control: control?.replace(/\d+/, 'n'),
  };
}

async function exchange({ url }: TestApp): Promise<ClientResponse[]> {
  const answers: ClientResponse[] = [];
  for (const [path, coding] of REQUESTS) {
    answers.push(await call(`${url}/packages/${path}`, { headers: { 'accept-encoding': coding } }));
  }
  return answers;
}

const EXPRESS: Layer[] = ['apicache', 'express-session', 'helmet', 'compression'];
const FASTIFY: Layer[] = ['@fastify/etag', '@fastify/compress', 'helmet', 'apicache'];
const orders = [
  ...permute(EXPRESS).map((layers) => ({ adapter: 'express' as const, layers, order: layers.join(', ') })),
  ...permute(EXPRESS.slice(0, 3)).map((layers) => ({ adapter: 'express' as const, layers, order: layers.join(', ') })),
  ...permute(FASTIFY).map((layers) => ({ adapter: 'fastify' as const, layers, order: layers.join(', ') })),
  ...permute(['@fastify/etag', 'express-session', 'helmet'] as Layer[]).map((layers) => ({
    adapter: 'fastify' as const,
    layers,
    order: layers.join(', '),
  })),
];

describe("real packages in an application's main.ts", () => {
  const open: TestApp[] = [];
  afterEach(async () => {
    for (const { app } of open) (app.getHttpServer() as Server).closeAllConnections();
    await Promise.all(open.splice(0).map((test) => test.close()));
  });
  const start = async (adapter: Adapter, layers: readonly Layer[], withCompression: boolean): Promise<TestApp> => {
    const test = await startApp(adapter, {
      perf: { compression: withCompression ? {} : false },
      metadata: { controllers: [PackagesController] },
      beforeInit: (app) => add(app, adapter, layers),
    });
    open.push(test);
    return test;
  };

  // The short run has every fourth order.
  const some = orders.filter((_, i) => process.env['PERF_LONG'] !== undefined || i % 4 === 0);
  it.each(some)('work as without compression on $adapter: $order', async ({ adapter, layers }) => {
    const [bare, ours] = [await start(adapter, layers, false), await start(adapter, layers, true)];
    const [before, after] = [await exchange(bare), await exchange(ours)];
    const wanted = before.map(({ headers }, i) => {
      // A cache around the application's own compressor replays its codings, with us and without.
      const own = headers['content-encoding'];
      const [path, coding] = REQUESTS[i]!;
      return own ?? (path === 'small' || coding === 'identity' ? undefined : coding);
    });
    expect(after.map(({ headers }) => headers['content-encoding'])).toEqual(wanted);
    const tagged = before.map(({ headers }) => headers.etag !== undefined);
    expect(after.map((each, i) => readable(each, tagged[i]!))).toEqual(
      before.map((each, i) => readable(each, tagged[i]!)),
    );
    for (const [i, { headers, text }] of after.entries()) {
      if (headers.etag === undefined) continue;
      const [path, coding] = REQUESTS[i]!;
      const known = { 'accept-encoding': coding, 'if-none-match': headers.etag };
      const again = await call(`${ours.url}/packages/${path}`, { headers: known });
      expect([again.status === 304 || again.text === text, again.status]).toEqual([true, expect.any(Number)]);
    }
  });
});
