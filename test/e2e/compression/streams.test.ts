import { randomBytes } from 'node:crypto';
import * as http from 'node:http';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { Body, Controller, Get, Post, Query, Res } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { call, callAccepting } from '../../fixtures/http-client.js';

const noise = randomBytes(200_000);
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

  @Post('body')
  body(@Body() body: unknown): unknown {
    return { body };
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

  describe.runIf(adapter === 'fastify')('of requests', () => {
    const sent = gzipSync('{"a":1}');
    const post = (path: string, type: string, body: Buffer) =>
      call(`${test.url}/${path}`, {
        method: 'POST',
        headers: { 'content-type': type, 'content-encoding': 'gzip' },
        body,
      });

    it('serves parsers that listen to `data` and `end`', async () => {
      await start((fastify) => {
        fastify.addContentTypeParser('application/own', (_request, payload, done) => {
          let text = '';
          payload.on('data', (chunk: Buffer) => (text += chunk.toString()));
          payload.on('end', () => done(null, text));
          payload.on('error', (error) => done(error));
        });
      });
      expect((await post('streams/body', 'application/own', sent)).text).toBe('{"body":"{\\"a\\":1}"}');
      expect((await post('streams/body', 'application/own', gzipSync('x'.repeat(3_000_000)))).status).toBe(413);
    });

    it('leaves nothing of a body that nobody has read on the connection', async () => {
      await start();
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      const ask = (method: string, path: string, body?: Buffer): Promise<number> =>
        new Promise((resolve, reject) => {
          const headers = body === undefined ? {} : { 'content-type': 'application/none', 'content-encoding': 'gzip' };
          const request = http.request(
            `${test.url}/${path}`,
            { method, agent, headers, timeout: 10_000 },
            (response) => {
              response.resume().once('end', () => resolve(response.statusCode ?? 0));
            },
          );
          request.once('error', reject).once('timeout', () => request.destroy(new Error('no answer')));
          request.end(body);
        });
      const large = gzipSync(noise.subarray(0, 200_000));
      expect([await ask('POST', 'streams/body', large), await ask('GET', 'streams/item?x=1')]).toEqual([415, 200]);
      agent.destroy();
    });
  });
});
