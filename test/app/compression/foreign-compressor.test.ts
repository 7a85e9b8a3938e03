import * as zlib from 'node:zlib';
import fastifyCompress from '@fastify/compress';
import { type INestApplication } from '@nestjs/common';
import compression from 'compression';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { startApp, type Adapter, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows, textOf } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

const { BROTLI_PARAM_QUALITY } = zlib.constants;
const quality = (level: number) => ({ params: { [BROTLI_PARAM_QUALITY]: level } });

type Register = (app: INestApplication) => void | Promise<void>;
const fastify =
  (options: object): Register =>
  async (app) => {
    const instance = app.getHttpAdapter().getInstance() as { register(...given: unknown[]): PromiseLike<unknown> };
    await instance.register(fastifyCompress, options);
  };
const express =
  (options: object): Register =>
  (app) =>
    void app.use(compression(options));

let test: TestApp;
const start = async (adapter: Adapter, beforeInit: Register): Promise<void> => {
  test = await startApp(adapter, { metadata: { controllers: [CompressionController] }, beforeInit });
};

describe("an application's own compressor", () => {
  afterEach(() => test.close());

  it.each<[Adapter, Register]>([
    ['fastify', fastify({ encodings: ['deflate'] })],
    ['express', express({ brotli: quality(2) })],
  ])('on %s encodes first, as without the module, and is left alone', async (adapter, register) => {
    await start(adapter, register);
    const response = await callAccepting(`${test.url}/c/json/60000`, 'br, deflate');
    expect(response.text).toBe(JSON.stringify(rows(60_000)));
    expect(response.headers['content-encoding']).toBe(adapter === 'fastify' ? 'deflate' : 'br');
    const byOwn =
      adapter === 'fastify' ? zlib.deflateSync : (body: Buffer) => zlib.brotliCompressSync(body, quality(2));
    expect(Math.abs(response.raw.byteLength - byOwn(response.body).byteLength)).toBeLessThan(200);
  });

  it.each<[Adapter, Register]>([
    ['fastify', fastify({ brotliOptions: quality(4) })],
    ['express', express({})],
  ])('on %s never encodes twice, whatever is sent', async (adapter, register) => {
    await start(adapter, register);
    for (const path of ['json/60000', 'json/3000', 'text/5000', 'stream/hello', 'buffer', 'missing', 'manual']) {
      for (const coding of ['br', 'gzip', 'deflate', 'gzip;q=0, *']) {
        const response = await callAccepting(`${test.url}/c/${path}`, coding);
        const plain = await callAccepting(`${test.url}/c/${path}`, 'identity');
        expect(response.text, `${path} ${coding}`).toBe(plain.text);
        if (path === 'missing') continue;
        expect(response.headers.vary, `${path} ${coding}`).toMatch(/^accept-encoding$/i);
      }
    }
  });

  /** Nest marks events `no-transform`, which the middleware heeds. */
  it('on express lets events through as they happen', async () => {
    await start('express', express({}));
    const { headers, chunksMs } = await callAccepting(`${test.url}/c/events`, 'gzip');
    expect(headers['content-encoding']).toBeUndefined();
    expect(chunksMs.length).toBeGreaterThanOrEqual(5);
  });

  it("on fastify sees the client's own headers as they came", async () => {
    const seen: unknown[] = [];
    await start('fastify', async (app) => {
      await fastify({})(app);
      const instance = app.getHttpAdapter().getInstance() as FastifyInstance;
      instance.addHook('onResponse', async (request) => void seen.push(request.headers));
    });
    expect((await callAccepting(`${test.url}/c/stream/x`, 'gzip')).text).toBe(`x${textOf(50_000)}`);
    await expect.poll(() => seen).toHaveLength(1);
    expect(seen[0]).not.toHaveProperty('x-no-compression');
  });
});
