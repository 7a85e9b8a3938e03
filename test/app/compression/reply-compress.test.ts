import * as zlib from 'node:zlib';
import fastifyCompress from '@fastify/compress';
import { Controller, Get, Res } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { callAccepting } from '../../fixtures/http-client.js';

const TEXT = 'compressed by the handler itself. '.repeat(2_000);

interface CompressingReply {
  type(type: string): this;
  compress(body: string): unknown;
}

@Controller('own')
class OwnController {
  @Get()
  own(@Res() reply: CompressingReply) {
    return reply.type('text/plain').compress(TEXT);
  }
}

describe('reply.compress() on Fastify, with @fastify/compress installed', () => {
  let test: TestApp;
  afterEach(() => test.close());

  it('is there without a registration, at a level that is safe', async () => {
    test = await startApp('fastify', { metadata: { controllers: [OwnController] } });
    const { headers, text, raw } = await callAccepting(`${test.url}/own`, 'br');
    expect([headers['content-encoding'], text]).toEqual(['br', TEXT]);
    const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 11 };
    expect(raw.byteLength).toBeGreaterThan(zlib.brotliCompressSync(TEXT, { params }).byteLength);
  });

  it('is that of the application where the application registers it', async () => {
    test = await startApp('fastify', {
      metadata: { controllers: [OwnController] },
      beforeInit: async (app) => {
        const instance = app.getHttpAdapter().getInstance() as { register(...given: unknown[]): PromiseLike<unknown> };
        await instance.register(fastifyCompress, { global: false, encodings: ['deflate'] });
      },
    });
    const { headers, text } = await callAccepting(`${test.url}/own`, 'br, deflate');
    expect([headers['content-encoding'], text]).toEqual(['deflate', TEXT]);
  });
});
