import type { ServerResponse } from 'node:http';
import { Controller, Get, Query, Res } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { callAccepting } from '../../fixtures/http-client.js';

let written = 0;
const counts = { item: 0, head: 0, user: 0 };

@Controller('streams')
class StreamsController {
  @Get('ended')
  async ended(@Res() response: ServerResponse): Promise<void> {
    response.setHeader('content-type', 'text/plain');
    response.write('x'.repeat(200_000));
    response.end();
    await new Promise<void>((resolve) => response.end(resolve));
    written = -1;
  }

  @Get('hello')
  hello(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    response.end('hello');
  }

  @Get('item')
  @SharedResponse({ ttlMs: 60_000 })
  item(@Query('x') x: string): unknown {
    counts.item += 1;
    return { id: x, status: 'on time' };
  }

  @Get('head')
  @SharedResponse({ ttlMs: 60_000 })
  head(@Res({ passthrough: true }) reply: { header(name: string, value: string): unknown }): unknown {
    counts.head += 1;
    // Fastify takes it, and Node refuses it later.
    if (counts.head === 1) reply.header('x-lines', 'a\nb');
    return { n: counts.head };
  }

  @Get('user')
  @SharedResponse({ ttlMs: 60_000, varyBy: (request: { headers: object }) => request.headers as never })
  user(): unknown {
    counts.user += 1;
    return counts;
  }
}

describe.each(adapters)('compression on %s', (adapter) => {
  let test: TestApp;
  const start = async (main: (instance: FastifyInstance) => void = () => {}): Promise<void> => {
    Object.assign(counts, { item: 0, head: 0, user: 0 });
    test = await startApp(adapter, {
      metadata: { controllers: [StreamsController] },
      beforeInit: (app) => void (adapter === 'fastify' && main(app.getHttpAdapter().getInstance() as FastifyInstance)),
    });
  };
  afterEach(() => test.close());
  const get = (path: string, options = {}) => callAccepting(`${test.url}/streams/${path}`, 'gzip', options);

  it('shares as many answers of one length as there is room for', async () => {
    await start();
    for (let round = 0; round < 3; round++) {
      for (let x = 10; x < 60; x++) expect((await get(`item?x=${x}`)).text).toBe(`{"id":"${x}","status":"on time"}`);
    }
    expect(counts.item).toBe(50);
  });

  it('does not keep an answer whose head Node refuses', async () => {
    await start();
    expect((await get('head')).status).toBe(500);
    expect([(await get('head')).text, (await get('head')).text]).toEqual(['{"n":2}', '{"n":2}']);
  });

  it('shares nothing where `varyBy` returns no string', async () => {
    await start();
    expect((await get('user')).status).toBe(500);
    expect(counts.user).toBe(0);
  });

  describe.runIf(adapter === 'express')("through Node's own functions", () => {
    it('calls back who ends twice', async () => {
      await start();
      written = 0;
      expect((await get('ended')).body.byteLength).toBe(200_000);
      await expect.poll(() => written).toBe(-1);
    });

    it('answers HEAD with the headers of GET where the body is below the threshold', async () => {
      await start();
      const { headers } = await get('hello', { method: 'HEAD' });
      expect([headers['content-encoding'], headers.vary]).toEqual([undefined, undefined]);
    });
  });
});
