import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Controller, Get, Module, Query, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, expect, it } from 'vitest';
import { PerfModule, PerfService, SharedResponse } from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import { callAccepting } from '../fixtures/http-client.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const MIB = 1024 * 1024;
const MAX_BYTES = 2 * MIB;
/** Each with two kilobytes of its own in the URL: what one leaves behind is seen. */
const URLS = process.env['PERF_LONG'] === undefined ? 5_000 : 100_000;
const PAD = 'x'.repeat(2_000);
const IN_A_ROW = 100;

const textOf = (seed: string): string => `${seed} `.repeat(Math.ceil(2_000 / (seed.length + 1)));

@Controller()
class FeedController {
  /** Another body for each URL. */
  @Get('shared')
  @SharedResponse({ ttlMs: 600_000 })
  shared(@Query('n') n: string): { text: string } {
    return { text: textOf(n) };
  }

  /** One body for all URLs. */
  @Get('same')
  @SharedResponse({ ttlMs: 600_000 })
  same(): { text: string } {
    return { text: textOf('same') };
  }

  /** Bodies that come again, and go in the end. */
  @Get('plain')
  plain(@Query('n') n: string): { text: string } {
    return { text: textOf(String(Math.floor(Number(n) / 30))) };
  }
}

@Module({
  imports: [PerfModule.forRoot({ sinks: [], compression: { cache: { maxBytes: MAX_BYTES } } })],
  controllers: [FeedController],
})
class FeedModule {}

let app: INestApplication;
afterEach(() => app.close());

/** Sends requests in a row on one connection, and resolves with how many were answered with 200. */
function ask(port: number, paths: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
    socket.on('close', () => resolve(received.split('HTTP/1.1 200').length - 1)).on('error', reject);
    const last = paths.length - 1;
    const head = (i: number): string =>
      `Host: test\r\nAccept-Encoding: gzip\r\n${i === last ? 'Connection: close\r\n' : ''}`;
    socket.end(paths.map((path, i) => `GET ${path} HTTP/1.1\r\n${head(i)}\r\n`).join(''));
  });
}

/** The first collection may be the end of one that was under way, which keeps what has died since its begin. */
function heldBytes(): number {
  collectGarbage();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

it.each(either('express'))(
  `${URLS} URLs on %s hold no more than the cache may`,
  async (adapter) => {
    app = await NestFactory.create(FeedModule, adapterOf(adapter), { logger: false });
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address() as { port: number };
    const compression = () => app.get(PerfService).snapshot().compression!;
    const kinds = ['shared', 'same', 'plain'];
    const visit = async (from: number, to: number): Promise<void> => {
      for (let n = from; n < to; n += IN_A_ROW) {
        const paths = Array.from({ length: IN_A_ROW }, (_, i) => `/${kinds[i % 3]}?n=${n + i}&pad=${PAD}`);
        expect(await ask(port, paths)).toBe(IN_A_ROW);
        expect(compression().cacheBytes).toBeLessThanOrEqual(MAX_BYTES);
      }
    };
    const warm = URLS / 5;
    await visit(0, warm);
    // It is full by now: what is kept from here on takes another's place.
    expect(compression().cacheBytes).toBeGreaterThan(MAX_BYTES / 2);
    const before = heldBytes();
    await visit(warm, URLS);
    expect((heldBytes() - before) / MIB).toBeLessThan(6);
    expect(compression().cacheHits).toBeGreaterThan(URLS / 20);
    expect((await callAccepting(`http://127.0.0.1:${port}/same?n=${URLS}`, 'gzip')).text).toContain(textOf('same'));
  },
  600_000,
);
