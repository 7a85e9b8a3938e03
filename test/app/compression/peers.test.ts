// What the suites of expressjs/compression and @fastify/compress hold that HTTP leaves no choice in, by the names of their tests.
import { once } from 'node:events';
import { connect } from 'node:http2';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { brotliCompressSync, gunzipSync } from 'node:zlib';
import { Controller, Get, Header, Res, StreamableFile } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adapterOf, adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows, textOf } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';
import { RawClient } from '../../fixtures/socket.js';
import { uncaughtDuring } from '../../fixtures/uncaught.js';

const TEXT = textOf(5_000);
/** Four bytes in UTF-8 each, so that chunks and samples end inside of them. */
const LEAVES = '\u{1f343}'.repeat(20_000);
let source: Readable;
let wroteAfterClose = false;

@Controller('peers')
class PeersController {
  @Get('leaves')
  @Header('content-type', 'text/plain; charset=utf-8')
  leaves(): string {
    return LEAVES;
  }

  @Get('source')
  source(): StreamableFile {
    const lines = async function* (): AsyncGenerator<Buffer> {
      for (let i = 0; i < 10; i++) yield Buffer.from(TEXT);
      await new Promise((resolve) => setTimeout(resolve, 50));
      yield Buffer.from('the last line');
    };
    source = Readable.from(lines());
    return new StreamableFile(source, { type: 'text/plain' });
  }

  @Get('encoded-arguments')
  encodedArguments(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    response.write(Buffer.from(TEXT).toString('hex'), 'hex');
    response.end(Buffer.from(TEXT).toString('base64'), 'base64');
  }

  @Get('one-encoded-argument')
  oneEncodedArgument(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    response.end(Buffer.from(TEXT).toString('base64'), 'base64');
  }

  @Get('after-close')
  afterClose(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    response.once('close', () => {
      response.write('hello, ');
      response.end('world');
      wroteAfterClose = true;
    });
    response.destroy();
  }

  @Get('web-stream')
  webStream(@Res() reply: FastifyReply): void {
    void reply.type('text/plain').send(new Response(TEXT).body!);
  }

  @Get('fetch/created')
  created(@Res() reply: FastifyReply): void {
    const headers = { 'content-type': 'text/plain', 'cache-control': 'public, max-age=120', 'set-cookie': 'a=b' };
    void reply.send(new Response(TEXT, { status: 201, headers }));
  }

  @Get('fetch/encoded')
  encoded(@Res() reply: FastifyReply): void {
    const headers = { 'content-type': 'text/plain', 'content-encoding': 'br' };
    void reply.send(new Response(new Uint8Array(brotliCompressSync(TEXT)), { headers }));
  }

  @Get('fetch/partial')
  partial(@Res() reply: FastifyReply): void {
    const headers = { 'content-type': 'text/plain', 'content-range': 'bytes 0-4999/9000' };
    void reply.send(new Response(TEXT, { status: 206, headers }));
  }

  @Get('fetch/bodyless')
  bodyless(@Res() reply: FastifyReply): void {
    void reply.send(new Response(null, { status: 204, headers: { 'x-custom': 'kept' } }));
  }
}

const metadata = { controllers: [PeersController, CompressionController] };

describe.each(adapters)('the behaviours of its peers on %s', (adapter) => {
  let test: TestApp;
  beforeAll(async () => {
    test = await startApp(adapter, { metadata });
  });
  afterAll(() => test.close());
  const get = (path: string, coding = 'gzip') => callAccepting(`${test.url}/peers/${path}`, coding);

  it('@fastify/compress: should not corrupt the file content', async () => {
    for (const coding of ['gzip', 'br', 'deflate', 'identity']) expect((await get('leaves', coding)).text).toBe(LEAVES);
  });

  it('@fastify/compress: it should close the stream, at its end and when the client leaves', async () => {
    expect((await get('source')).text).toBe(`${TEXT.repeat(10)}the last line`);
    expect(source.closed).toBe(true);
    const client = await RawClient.open(test.port);
    client.get('/peers/source', 'Accept-Encoding: gzip\r\n');
    await client.until('content-encoding: gzip');
    client.leave();
    await expect.poll(() => source.closed).toBe(true);
  });

  describe.runIf(adapter === 'express')('whose handlers write themselves', () => {
    it.each(['encoded-arguments', 'one-encoded-argument'])('compression: should work with %s', async (path) => {
      const { headers, text } = await get(path);
      expect([headers['content-encoding'], text]).toEqual(['gzip', path === 'encoded-arguments' ? TEXT + TEXT : TEXT]);
    });

    it('compression: should allow writing after close', async () => {
      const errors = await uncaughtDuring(async () => {
        await expect(get('after-close')).rejects.toThrow(/socket hang up|ECONNRESET/);
        await expect.poll(() => wroteAfterClose).toBe(true);
      });
      expect(errors).toEqual([]);
    });
  });

  describe.runIf(adapter === 'fastify')('that answer as `fetch` does', () => {
    it('@fastify/compress: it should compress a Web ReadableStream body', async () => {
      const { headers, text } = await get('web-stream');
      expect([headers['content-encoding'], text]).toEqual(['gzip', TEXT]);
    });

    it('@fastify/compress: it should preserve a Fetch API Response status and headers', async () => {
      const { status, headers, text } = await get('fetch/created');
      expect([status, headers['cache-control'], headers['set-cookie'], text]).toEqual([
        201,
        'public, max-age=120',
        ['a=b'],
        TEXT,
      ]);
    });

    it('@fastify/compress: it should not compress one that is already compressed, or partial', async () => {
      const encoded = await get('fetch/encoded');
      expect([encoded.headers['content-encoding'], encoded.text]).toEqual(['br', TEXT]);
      const partial = await get('fetch/partial');
      expect([partial.status, partial.headers['content-encoding'], partial.text]).toEqual([206, undefined, TEXT]);
    });

    it('@fastify/compress: it should send a bodyless Fetch API Response as is', async () => {
      const { status, headers, raw } = await get('fetch/bodyless');
      expect([status, headers['x-custom'], raw.byteLength]).toEqual([204, 'kept', 0]);
    });
  });
});

it('compression: should work with http2 server', async () => {
  const test = await startApp('fastify', { metadata, adapter: adapterOf('fastify', { http2: true }) });
  const session = connect(test.url);
  const stream = session.request({ ':path': '/c/json/5000', 'accept-encoding': 'gzip' });
  const [headers] = (await once(stream, 'response')) as [Record<string, string>];
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  session.destroy();
  await test.close();
  expect([headers['content-encoding'], headers['vary']]).toEqual(['gzip', 'accept-encoding']);
  expect(JSON.parse(gunzipSync(Buffer.concat(chunks)).toString())).toEqual(rows(5_000));
});
