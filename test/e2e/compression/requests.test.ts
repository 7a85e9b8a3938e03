import * as zlib from 'node:zlib';
import { Body, Controller, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { INestApplication } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
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

const sent = JSON.stringify({ rows: rows(20_000) });
const { zstdCompressSync } = zlib as { zstdCompressSync?: (body: string) => Buffer };
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
    ['deflate', zlib.deflateSync(sent)],
    ['br', zlib.brotliCompressSync(sent)],
    ...(zstdCompressSync === undefined ? [] : [['zstd', zstdCompressSync(sent)] as [string, Buffer]]),
  ])('are decoded: %s', async (coding, body) => {
    const { status, text } = await post(test.url, coding, body);
    expect([status, JSON.parse(text)]).toEqual([201, { body: JSON.parse(sent), coding: coding.trim() }]);
  });

  it.each(['utf-8', 'snappy', 'aws-chunked', 'identity', 'gzip, br', 'constructor', ''])(
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
