import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { Controller, Get, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows } from '../../fixtures/compression.controller.js';

/** What the application has given away; nobody reads it. */
let given = 0;
let open: (() => void) | null = null;
const MOST = 300_000_000;
/** Text that gets smaller by a quarter. */
const noise = randomBytes(6_000_000).toString('base64');
/** Another one each time: a coding finds what it has seen a moment ago. */
const chunkOf = (length: number): string => {
  const from = given % (noise.length - length);
  given += length;
  return noise.slice(from, from + length);
};

@Controller('endless')
class EndlessController {
  @Get('written')
  written(@Query('chunk') chunk: string, @Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    const more = (): void => {
      while (given < MOST) {
        if (!response.write(chunkOf(Number(chunk)))) return void response.once('drain', more);
      }
      response.end();
    };
    response.once('close', () => open?.());
    more();
  }

  @Get('asking')
  async asking(@Query('chunk') chunk: string, @Res() response: ServerResponse): Promise<void> {
    response.setHeader('content-type', 'text/plain');
    response.once('close', () => open?.());
    while (given < MOST && !response.destroyed) {
      response.write(chunkOf(Number(chunk)));
      if (response.writableNeedDrain) await new Promise<void>((resolve) => response.once('drain', resolve));
    }
    response.end();
  }

  @Get('streamed')
  streamed(@Query('chunk') chunk: string, @Res() reply: FastifyReply & ServerResponse): void {
    const source = Readable.from(
      (function* () {
        while (given < MOST) yield chunkOf(Number(chunk));
      })(),
      { objectMode: false },
    );
    (reply.raw ?? reply).once('close', () => open?.());
    if (typeof reply.code === 'function') void reply.type('text/plain').send(source);
    else source.pipe(reply.setHeader('content-type', 'text/plain'));
  }
}

const CHUNKS = process.env['PERF_LONG'] === undefined ? [20_000] : [20_000, 70_000, 1_000_000];

/** A client that sends and does not read. */
function unreading(port: number, path: string): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n`);
  return socket;
}

/** Bytes that the application had given away when it was made to wait. */
async function takenIn(): Promise<number> {
  let before = -1;
  await expect
    .poll(
      () => {
        const stands = given > 0 && given === before;
        before = given;
        return stands;
      },
      { interval: 400 },
    )
    .toBe(true);
  return given;
}

describe.each(adapters)('the wire on %s', (adapter) => {
  let test: TestApp;
  const start = async (compression: boolean): Promise<void> => {
    test = await startApp(adapter, {
      perf: { compression },
      metadata: { controllers: [EndlessController, CompressionController] },
    });
  };
  afterEach(() => test.close());

  const paths = adapter === 'express' ? ['written', 'asking', 'streamed'] : ['streamed'];
  it.each(paths.flatMap((path) => CHUNKS.map((chunk) => ({ path, chunk }))))(
    'makes an application wait for a client that does not read, as without compression: $path in chunks of $chunk',
    async ({ path, chunk }) => {
      const bytes = [];
      for (const compression of [false, true]) {
        await start(compression);
        given = 0;
        const left = new Promise<void>((resolve) => (open = resolve));
        const socket = unreading(test.port, `/endless/${path}?chunk=${chunk}`);
        bytes.push(await takenIn());
        socket.destroy();
        await left;
        if (!compression) await test.close();
      }
      const [bare = 0, ours = 0] = bytes;
      // The kernel's buffers hold more of what is smaller; what is on its way through the encoder comes on top.
      expect(ours).toBeLessThan(2 * bare + 4 * chunk + 4_000_000);
    },
    120_000,
  );

  it('answers pipelined requests in their order, whatever takes longest', async () => {
    await start(true);
    const sizes = [200_000, 100, 50_000, 2_000, 400_000, 10];
    const socket = connect(test.port, '127.0.0.1');
    const requests = sizes.map((size) => `GET /c/json/${size} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n`);
    socket.write(requests.join(''));
    let received = Buffer.alloc(0);
    for (const size of sizes) {
      const wanted = JSON.stringify(rows(size));
      for (;;) {
        const end = received.indexOf('\r\n\r\n');
        const head = received.subarray(0, Math.max(end, 0)).toString();
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
        if (end >= 0 && received.length >= end + 4 + length) {
          const body = received.subarray(end + 4, end + 4 + length);
          const text = /content-encoding: gzip/i.test(head) ? gunzipSync(body).toString() : body.toString();
          expect(text).toBe(wanted);
          received = received.subarray(end + 4 + length);
          break;
        }
        received = await new Promise((resolve) =>
          socket.once('data', (chunk: Buffer) => resolve(Buffer.concat([received, chunk]))),
        );
      }
    }
    expect(received).toHaveLength(0);
    socket.destroy();
  });
});
