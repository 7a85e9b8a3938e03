import * as zlib from 'node:zlib';
import fastifyCompress from '@fastify/compress';
import { Controller, type INestApplication, Logger } from '@nestjs/common';
import compression from 'compression';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { adapters, startApp, type Adapter, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows, textOf } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_MODE, BROTLI_MODE_TEXT } = zlib.constants;
const quality = (level: number) => ({ params: { [BROTLI_PARAM_QUALITY]: level } });
const onlyMode = { params: { [BROTLI_PARAM_MODE]: BROTLI_MODE_TEXT } };

type Register = (app: INestApplication) => void;
const fastify =
  (options: object): Register =>
  (app) => {
    // Not awaited, as it is often written.
    void (app.getHttpAdapter().getInstance() as { register(plugin: unknown, options: object): unknown }).register(
      fastifyCompress,
      options,
    );
  };
const express =
  (options: object): Register =>
  (app) =>
    void app.use(compression(options));

let said: { log: string[]; warn: string[] };
let test: TestApp;
const start = async (adapter: Adapter, beforeInit?: Register, controllers = [CompressionController]): Promise<void> => {
  test = await startApp(adapter, {
    metadata: { controllers },
    beforeInit: async (app) => {
      // Without them there is a warning of its own.
      app.enableShutdownHooks();
      beforeInit?.(app);
    },
  });
};
const settled = (kind: 'log' | 'warn', text: string) => expect.poll(() => said[kind].join('\n')).toContain(text);

describe("an application's own compressor", () => {
  beforeEach(() => {
    said = { log: [], warn: [] };
    vi.spyOn(Logger.prototype, 'log').mockImplementation((message: unknown) => void said.log.push(String(message)));
    vi.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void said.warn.push(String(message)));
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await test.close();
  });

  it.each<[Adapter, string, Register]>([
    ['fastify', 'brotli 11', fastify({ brotliOptions: quality(11) })],
    ['fastify', 'only a brotli mode', fastify({ brotliOptions: onlyMode })],
    ['express', 'brotli 11', express({ brotli: quality(11) })],
  ])('on %s with %s sends bodies at a safe level', async (adapter, _what, register) => {
    await start(adapter, register);
    const response = await callAccepting(`${test.url}/c/json/60000`, 'br');
    expect(response.text).toBe(JSON.stringify(rows(60_000)));
    const slowest = zlib.brotliCompressSync(response.body, quality(11));
    expect(response.raw.byteLength).toBeGreaterThan(slowest.byteLength);
  });

  it('on fastify is mentioned, and how to keep it', async () => {
    @Controller()
    class Nothing {}
    await start('fastify', fastify({}), [Nothing as never]);
    await settled('log', 'registers @fastify/compress itself. PerfModule encodes before it');
    await settled('log', 'give brotli a quality of at most 6');
    expect(said.warn.join('\n')).not.toContain('PerfModule encodes before it');
  });

  it.each(adapters)('is not looked for on %s where there is none', async (adapter) => {
    await start(adapter);
    await callAccepting(`${test.url}/c/json/5000`, 'br');
    expect([...said.log, ...said.warn].filter((line) => /registers .*itself|encodes before/.test(line))).toEqual([]);
  });

  it.each<[Adapter, Register]>([
    ['fastify', fastify({ brotliOptions: quality(4) })],
    ['express', express({})],
  ])('on %s never encodes twice, whatever is sent', async (adapter, register) => {
    await start(adapter, register);
    for (const path of [
      'json/60000',
      'json/3000',
      'text/5000',
      'stream/80',
      'stream/hello',
      'buffer',
      'missing',
      'manual',
    ]) {
      for (const coding of ['br', 'gzip', 'deflate', 'gzip;q=0, *']) {
        const response = await callAccepting(`${test.url}/c/${path}`, coding);
        const plain = await callAccepting(`${test.url}/c/${path}`, 'identity');
        expect(response.text, `${path} ${coding}`).toBe(plain.text);
        // What a Fastify handler writes to the raw response passes every hook by.
        if ((path === 'manual' && adapter === 'fastify') || path === 'missing') continue;
        expect(response.headers.vary, `${path} ${coding}`).toMatch(/^accept-encoding$/i);
      }
    }
  });

  it('on fastify is warned of where @NoCompression() cannot bind it', async () => {
    await start('fastify', fastify({}));
    await settled(
      'warn',
      '@NoCompression() on CompressionController.off, CompressionController.offStream does not bind it: remove it.',
    );
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
    await start('fastify', (app) => {
      fastify({})(app);
      const instance = app.getHttpAdapter().getInstance() as FastifyInstance;
      instance.addHook('onResponse', async (request) => void seen.push(request.headers));
    });
    expect((await callAccepting(`${test.url}/c/stream/x`, 'gzip')).text).toBe(`x${textOf(50_000)}`);
    await expect.poll(() => seen).toHaveLength(1);
    expect(seen[0]).not.toHaveProperty('x-no-compression');
  });

  it('on fastify registered too late to do anything does not stop the boot', async () => {
    const { Injectable, Inject } = await import('@nestjs/common');
    const { HttpAdapterHost } = await import('@nestjs/core');
    class Late {
      constructor(private readonly host: InstanceType<typeof HttpAdapterHost>) {}
      async onModuleInit(): Promise<void> {
        await this.host.httpAdapter
          .getInstance<{ register(plugin: unknown): PromiseLike<unknown> }>()
          .register(fastifyCompress);
      }
    }
    Inject(HttpAdapterHost)(Late, undefined, 0);
    Injectable()(Late);
    test = await startApp('fastify', { metadata: { controllers: [CompressionController], providers: [Late] } });
    await settled('warn', 'registers @fastify/compress after its routes, where it compresses nothing');
    const response = await callAccepting(`${test.url}/c/stream/hello`, 'br');
    expect(response.headers['content-encoding']).toBe('br');
  });
});
