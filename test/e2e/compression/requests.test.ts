import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { Body, Controller, Post, Req } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import type { INestApplication } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adapterOf, startApp, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { call } from '../../fixtures/http-client.js';

@Controller('echo')
class EchoController {
  @Post()
  echo(@Body() body: unknown, @Req() request: { raw?: IncomingMessage }): unknown {
    return { body, coding: request.raw?.headers['content-encoding'] };
  }
}

@Controller('proxied')
class ProxyController {
  @Post()
  async proxied(@Req() { raw }: { raw: IncomingMessage }): Promise<number> {
    await new Promise(setImmediate);
    let bytes = 0;
    for await (const chunk of raw) bytes += (chunk as Buffer).byteLength;
    return bytes;
  }
}

const sent = JSON.stringify({ rows: rows(20_000) });
const post = (url: string, coding: string, body: string | Buffer, type = 'application/json') =>
  call(`${url}/echo`, { method: 'POST', headers: { 'content-type': type, 'content-encoding': coding }, body });

describe('requests with a Content-Encoding, on fastify', () => {
  let test: TestApp;
  let bare: INestApplication;
  let bareUrl: string;
  beforeAll(async () => {
    test = await startApp('fastify', { metadata: { controllers: [EchoController] } });
    class Bare {}
    bare = await NestFactory.create({ module: Bare, controllers: [EchoController] }, adapterOf('fastify'), {
      logger: false,
    });
    await bare.listen(0, '127.0.0.1');
    bareUrl = await bare.getUrl();
  });
  afterAll(async () => {
    await test.close();
    await bare.close();
  });

  it.each<[string, Buffer]>([
    ['gzip', zlib.gzipSync(sent)],
    ['GZIP', zlib.gzipSync(sent)],
    ['x-gzip', zlib.gzipSync(sent)],
    ['X-Gzip ', zlib.gzipSync(sent)],
    ['gzip', Buffer.concat([zlib.gzipSync(sent.slice(0, 5_000)), zlib.gzipSync(sent.slice(5_000))])],
    ['deflate', zlib.deflateSync(sent)],
    ['br', zlib.brotliCompressSync(sent)],
  ])('are decoded: %s', async (coding, body) => {
    const { status, text } = await post(test.url, coding, body);
    expect([status, JSON.parse(text)]).toEqual([201, { body: JSON.parse(sent), coding: coding.trim() }]);
  });

  it.each(['utf-8', 'snappy', 'aws-chunked', 'identity', 'zstd', 'gzip, br', 'constructor', ''])(
    'are the application’s own business, as without the module: "%s"',
    async (coding) => {
      const [ours, without] = [await post(test.url, coding, sent), await post(bareUrl, coding, sent)];
      expect([ours.status, ours.text]).toEqual([without.status, without.text]);
      expect(ours.status).toBe(201);
    },
  );

  it.each<[string, string, Buffer]>([
    ['is no gzip', 'gzip', Buffer.from(sent)],
    ['ends too early', 'gzip', zlib.gzipSync(sent).subarray(0, 100)],
    ['is no brotli', 'br', Buffer.from('no brotli at all')],
    ['goes on after its end', 'gzip', Buffer.concat([zlib.gzipSync(sent), Buffer.from('more')])],
    ['goes on after its end', 'deflate', Buffer.concat([zlib.deflateSync(sent), Buffer.from('more')])],
    ['goes on after its end', 'br', Buffer.concat([zlib.brotliCompressSync(sent), Buffer.from('more')])],
    ['is two of them', 'br', Buffer.concat([zlib.brotliCompressSync('[1]'), zlib.brotliCompressSync('[2]')])],
  ])('get 400, and why, where the body %s', async (_what, coding, body) => {
    const { status, text } = await post(test.url, coding, body);
    expect([status, (JSON.parse(text) as { message: string }).message]).toEqual([
      400,
      expect.stringContaining(`The body is not valid ${coding}`),
    ]);
    expect((await post(test.url, 'gzip', zlib.gzipSync('{}'))).status).toBe(201);
  });

  it('get 413 at the limit of the decoded body, which is inflated no further', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(150_000_000, '0'), { level: 1 });
    const before = process.cpuUsage();
    const { status } = await post(test.url, 'gzip', bomb, 'text/plain');
    const { user } = process.cpuUsage(before);
    expect(status).toBe(413);
    const startedUs = process.cpuUsage();
    zlib.gunzipSync(bomb);
    // All of it would take as long as this.
    expect(user).toBeLessThan(process.cpuUsage(startedUs).user / 2);
  });
});

describe('requests with a Content-Encoding, where main.ts has its own rules', () => {
  const running: TestApp[] = [];
  afterAll(() => Promise.all(running.map((app) => app.close())));
  const start = async (main: (app: NestFastifyApplication) => void): Promise<string> => {
    const beforeInit = (app: INestApplication): void => main(app as NestFastifyApplication);
    const app = await startApp('fastify', { metadata: { controllers: [EchoController] }, beforeInit });
    running.push(app);
    return app.url;
  };

  it('are not touched where nobody reads what is decoded: a proxy reads the request itself', async () => {
    const type = 'application/x-proxied';
    const body = zlib.gzipSync(randomBytes(200_000).toString('hex'));
    const proxying = await startApp('fastify', {
      metadata: { controllers: [ProxyController] },
      beforeInit: (app) => {
        (app as unknown as NestFastifyApplication)
          .getHttpAdapter()
          .getInstance()
          .addContentTypeParser(type, (_request, _payload, done) => done(null));
      },
    });
    const headers = { 'content-type': type, 'content-encoding': 'gzip' };
    const { text } = await call(`${proxying.url}/proxied`, { method: 'POST', headers, body });
    expect(Number(text)).toBe(body.byteLength);
    await proxying.close();
  });

  it.each(['awaited', 'not awaited'])('are left to a plugin’s own routes, as of a proxy, %s', async (how) => {
    const proxying = await startApp('fastify', {
      metadata: { controllers: [EchoController] },
      beforeInit: async (app) => {
        const registered = (app as unknown as NestFastifyApplication).register((plugin, _options, done) => {
          plugin.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload));
          plugin.post('/proxied', (request, reply) => reply.send(request.body));
          done();
        });
        if (how === 'awaited') await registered;
      },
    });
    const body = zlib.gzipSync('{"a":1}');
    const headers = { 'content-type': 'application/x-proxied', 'content-encoding': 'gzip' };
    const answer = await call(`${proxying.url}/proxied`, { method: 'POST', headers, body });
    expect([answer.status, answer.body.equals(body)]).toEqual([200, true]);
    expect((await post(proxying.url, 'gzip', body)).status).toBe(201);
    await proxying.close();
  });

  it('keep the error that their reader ends them with', async () => {
    const url = await start((app) => {
      const fastify = app.getHttpAdapter().getInstance();
      fastify.addContentTypeParser('application/x-read', (_request, payload, done) => done(null, payload));
      fastify.post('/read', (request, reply) => {
        const body = request.body as Readable;
        body.once('error', (error) => reply.code(502).send(error.message));
        body.destroy(new Error('upstream is not there'));
      });
    });
    const headers = { 'content-type': 'application/x-read', 'content-encoding': 'gzip' };
    const { status, text } = await call(`${url}/read`, { method: 'POST', headers, body: zlib.gzipSync('{}') });
    expect([status, text]).toEqual([502, 'upstream is not there']);
  });

  it.each(['application/json', 'application/json-patch+json'])(
    'get 413 at the limit also from a parser that reads a stream, as %s',
    async (type) => {
      let bytes = 0;
      const adapter: unknown = new FastifyAdapter({ bodyLimit: 100_000 });
      const reading = await startApp('fastify', {
        adapter: adapter as AbstractHttpAdapter,
        nest: { bodyParser: false },
        metadata: { controllers: [EchoController] },
        beforeInit: (app) => {
          const fastify = (app as unknown as NestFastifyApplication).getHttpAdapter().getInstance();
          fastify.removeAllContentTypeParsers();
          fastify.addContentTypeParser(
            type,
            (_request: unknown, payload: Readable, done: (e: Error | null) => void) => {
              payload.on('data', (chunk: Buffer) => (bytes += chunk.byteLength));
              payload.on('end', () => done(null)).on('error', done);
            },
          );
        },
      });
      const { status } = await post(reading.url, 'gzip', zlib.gzipSync(Buffer.alloc(20_000_000)), type);
      expect([status, bytes <= 100_000]).toEqual([413, true]);
      await reading.close();
    },
  );

  it('have the body limit of their parser', async () => {
    const url = await start((app) => void app.useBodyParser('application/json', { bodyLimit: 10_000_000 }));
    const large = JSON.stringify({ text: 'x'.repeat(2_000_000) });
    expect((await post(url, 'gzip', zlib.gzipSync(large))).status).toBe(201);
    const tooLarge = JSON.stringify({ text: 'x'.repeat(11_000_000) });
    expect((await post(url, 'gzip', zlib.gzipSync(tooLarge))).status).toBe(413);
  });

  it('are left to a hook that decodes them', async () => {
    const url = await start((app) => {
      app
        .getHttpAdapter()
        .getInstance()
        .addHook('preParsing', (_request, _reply, payload, done) => {
          const decoded = Object.assign(zlib.createGunzip(), { receivedEncodedLength: 0 });
          payload.on('data', (chunk: Buffer) => (decoded.receivedEncodedLength += chunk.byteLength));
          done(null, payload.pipe(decoded));
        });
    });
    const { status, text } = await post(url, 'gzip', zlib.gzipSync('{"a":1}'));
    expect([status, JSON.parse(text)]).toEqual([201, { body: { a: 1 }, coding: 'gzip' }]);
  });
});
