import * as http from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { Controller, Get, Headers, Logger, Query, Res, StreamableFile } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PerfService, type CompressionOptions } from '../../../src/index.js';
import { Compressor } from '../../../src/compression/codec.js';
import { settle } from '../../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows, textOf } from '../../fixtures/compression.controller.js';
import { call, callAccepting } from '../../fixtures/http-client.js';

let afterwards: { headersSent: boolean; writableEnded: boolean; error: string | undefined };
const mutable = { version: 0, rows: rows(40_000) };

/** Of a hundred requests at once, with four codings and seven users. */
const ROUNDS = process.env['PERF_LONG'] === undefined ? 1 : 3;
const sources: Readable[] = [];

/** Leaves when the first bytes have come. */
function leaveStream(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent: false, headers: { 'accept-encoding': 'gzip' } }, (response) => {
      response.once('data', () => {
        response.destroy();
        resolve();
      });
    });
    request.once('error', reject);
  });
}

/** Of either framework. */
interface Answering {
  readonly raw?: ServerResponse;
  header(name: string, value: unknown): unknown;
  setHeader?(name: string, value: unknown): unknown;
}

@Controller('safety')
class SafetyController {
  @Get('mine')
  mine(@Headers('x-user') user: string): unknown {
    // The same length for every user, and equal but for one place in the middle.
    return { before: rows(20_000), user, after: rows(20_000) };
  }

  @Get('mutable')
  mutable(): unknown {
    return mutable;
  }

  @Get('nulls')
  nulls(@Query('bytes') bytes: string, @Res({ passthrough: true }) response: Answering): unknown {
    for (const name of ['cache-control', 'content-range', 'vary']) {
      // Fastify's reply, or Node's response; Express would make a string of it.
      if (response.raw === undefined) response.setHeader!(name, null);
      else response.header(name, null);
    }
    return rows(Number(bytes));
  }

  @Get('endless')
  endless(): StreamableFile {
    const source = Readable.from(
      (function* () {
        for (;;) yield Buffer.from(textOf(10_000));
      })(),
    );
    sources.push(source);
    return new StreamableFile(source, { type: 'text/plain' });
  }

  @Get('twice')
  twice(@Res() response: ServerResponse & { send(body: unknown): unknown }): void {
    response.send(rows(60_000));
    afterwards = { headersSent: response.headersSent, writableEnded: response.writableEnded, error: undefined };
    try {
      response.setHeader('x-late', '1');
    } catch (error) {
      afterwards.error = (error as NodeJS.ErrnoException).code;
    }
    response.end('more');
  }
}

describe.each(adapters)('compression on %s', (adapter) => {
  let test: TestApp;
  const start = async (compression: CompressionOptions = {}): Promise<void> => {
    test = await startApp(adapter, {
      perf: { compression },
      metadata: { controllers: [SafetyController, CompressionController] },
    });
  };
  const stats = () => test.app.get(PerfService).snapshot().compression!;
  afterEach(async () => {
    vi.restoreAllMocks();
    await test.close();
  });

  it('never gives a user the body of another, of the same length, under 100 connections', async () => {
    await start();
    const users = Array.from({ length: 100 }, (_, i) => `user-${String(i % 7).padStart(3, '0')}`);
    for (let round = 0; round < ROUNDS; round++) {
      const answers = await Promise.all(
        users.map((user, i) =>
          callAccepting(`${test.url}/safety/mine`, ['br', 'gzip', 'deflate', 'identity'][i % 4]!, {
            headers: { 'x-user': user },
          }),
        ),
      );
      answers.forEach(({ text }, i) => expect((JSON.parse(text) as { user: string }).user).toBe(users[i]));
    }
    expect(stats().cacheHits).toBeGreaterThan(0);
  }, 120_000);

  it('never serves a returned object as it was before it was changed in place', async () => {
    await start();
    for (mutable.version = 1; mutable.version <= 5; mutable.version++) {
      for (let again = 0; again < 6; again++) {
        const { text } = await callAccepting(`${test.url}/safety/mutable`, 'br');
        expect((JSON.parse(text) as typeof mutable).version).toBe(mutable.version);
      }
    }
  });

  // As `reply.header('cache-control', upstream.headers.get('cache-control'))` sets them.
  it.each([100, 60_000])('takes headers set to null for absent ones, with a body of %i bytes', async (bytes) => {
    await start();
    const response = await callAccepting(`${test.url}/safety/nulls?bytes=${bytes}`, 'gzip');
    expect([response.status, response.text]).toEqual([200, JSON.stringify(rows(bytes))]);
    if (bytes > 100) expect(response.headers.vary).toBe('accept-encoding');
    expect(response.headers['content-encoding']).toBe(bytes === 100 ? undefined : 'gzip');
  });

  it('sends the body unencoded when the compressor fails, and says so once', async () => {
    await start({ cache: false });
    const warned = vi.spyOn(Logger.prototype, 'warn');
    const failing = vi
      .spyOn(Compressor.prototype, 'encode')
      .mockImplementation(() => Promise.reject(new Error('zlib is broken')));
    for (let i = 0; i < 3; i++) {
      const response = await callAccepting(`${test.url}/c/json/60000`, 'gzip');
      expect(response.headers['content-encoding']).toBeUndefined();
      expect(response.text).toBe(JSON.stringify(rows(60_000)));
    }
    expect(warned.mock.calls.filter(([message]) => String(message).includes('zlib is broken'))).toHaveLength(1);
    failing.mockImplementation(() => {
      throw new Error('zlib is very broken');
    });
    expect((await callAccepting(`${test.url}/c/json/60000`, 'gzip')).status).toBe(200);
  });

  it('keeps bounded memory and right bodies with a cache that is always full', async () => {
    const maxBytes = 300_000;
    await start({ cache: { maxBytes } });
    await Promise.all(
      Array.from({ length: 60 }, async (_, seed) => {
        const { text } = await callAccepting(`${test.url}/c/json/60000?seed=${seed}`, 'gzip');
        expect(text).toBe(JSON.stringify(rows(60_000, seed)));
      }),
    );
    // What is being compressed counts too, so the bound holds at every moment, not only at rest.
    expect(stats().cacheBytes).toBeLessThanOrEqual(maxBytes);
    const large = await callAccepting(`${test.url}/c/json/600000`, 'gzip');
    expect(large.text).toBe(JSON.stringify(rows(600_000)));
    expect(stats().cacheBytes).toBeLessThanOrEqual(maxBytes);
  });

  it('survives clients that leave while their body is compressed', async () => {
    await start();
    sources.length = 0;
    await Promise.all(
      Array.from({ length: 30 }, (_, i) => {
        const socket = connect(test.port, '127.0.0.1');
        socket.write(`GET /c/json/${300_000 + i} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br\r\n\r\n`);
        return new Promise<void>((resolve) => setImmediate(() => resolve(void socket.destroy())));
      }),
    );
    await Promise.all(Array.from({ length: 10 }, () => leaveStream(`${test.url}/safety/endless`)));
    await expect.poll(() => sources.filter((source) => !source.destroyed)).toEqual([]);
    expect(sources).toHaveLength(10);
    const response = await callAccepting(`${test.url}/c/json/300000`, 'br');
    expect(response.text).toBe(JSON.stringify(rows(300_000)));
    await settle(test.app);
    expect((await test.requests()).filter(({ outcome }) => outcome === 'aborted').length).toBeGreaterThanOrEqual(10);
  });

  it('closes what it holds with the application', async () => {
    await start();
    for (let i = 0; i < 2; i++) await callAccepting(`${test.url}/c/json/60000`, 'br');
    expect(stats().cacheBytes).toBeGreaterThan(60_000);
    const service = test.app.get(PerfService);
    await test.app.close();
    expect(service.snapshot().compression!.cacheBytes).toBe(0);
  });

  it.runIf(adapter === 'express')(
    'looks ended while the body is encoded, as it would without compression',
    async () => {
      await start();
      const response = await callAccepting(`${test.url}/safety/twice`, 'br');
      expect(response.text).toBe(JSON.stringify(rows(60_000)));
      expect(response.headers['x-late']).toBeUndefined();
      expect(afterwards).toEqual({ headersSent: true, writableEnded: true, error: 'ERR_HTTP_HEADERS_SENT' });
    },
  );

  it('installs nothing when it is off', async () => {
    test = await startApp(adapter, {
      perf: { compression: false },
      metadata: { controllers: [SafetyController, CompressionController] },
    });
    const response = await callAccepting(`${test.url}/c/json/60000`, 'gzip');
    expect(response.headers['content-encoding']).toBeUndefined();
    expect(response.headers.vary).toBeUndefined();
    expect(test.app.get(PerfService).snapshot().compression).toBeNull();
    expect((await call(`${test.url}/c/off`)).status).toBe(200);
  });
});
