import type { Server, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Controller, Get, Header, HttpCode, Injectable, Res, StreamableFile } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { NoCompression, SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, textOf } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

interface Reply {
  header(name: string, value: string): unknown;
}

@Controller('alone')
class AloneController {
  /** Said before the body is given: what frameworks count by themselves comes after. */
  @Get('length')
  @Header('content-type', 'text/plain; charset=utf-8')
  @Header('content-length', '5000')
  length(): string {
    return textOf(5_000);
  }

  @Get('shared-length')
  @SharedResponse({ ttlMs: 60_000 })
  @Header('content-type', 'text/plain; charset=utf-8')
  @Header('content-length', '5000')
  sharedLength(): string {
    return textOf(5_000);
  }

  /** Clients show how far they are. */
  @Get('download')
  download(): StreamableFile {
    return new StreamableFile(Buffer.from(textOf(5_000)), { type: 'text/plain' });
  }

  @Get('raw-length')
  rawLength(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    response.setHeader('content-length', '5000');
    response.end(textOf(5_000));
  }

  @Get('file')
  @HttpCode(304)
  file(@Res({ passthrough: true }) reply: Reply): void {
    reply.header('accept-ranges', 'bytes');
    reply.header('etag', '"v1"');
  }

  @Get('ended')
  ended(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain');
    response.end(textOf(1_000_000));
    state = response.writableEnded && response.headersSent;
    // As a server does that closes: it ends the connections of responses that are finished.
    const { server } = response.socket as unknown as { server: Server };
    setImmediate(() => server.closeIdleConnections());
  }

  /** Node refuses both: a name without a value, and pairs beside the headers of Express. */
  @Get('refused')
  refused(@Res() response: ServerResponse): void {
    const codes = [
      ['x-odd'],
      [
        ['x-one', '1'],
        ['x-two', '2'],
      ],
    ].map((headers) => {
      try {
        return response.writeHead(200, headers as never);
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    });
    response.statusCode = 500;
    response.end(JSON.stringify(codes));
  }

  @Get('refused-value')
  refusedValue(@Res() response: ServerResponse): void {
    try {
      response.writeHead(404, { 'x-name': 'ē' });
    } catch {
      response.end('not found');
    }
  }

  @Get('latin1')
  latin1(@Res() response: ServerResponse): void {
    response.setHeader('content-type', 'text/plain; charset=iso-8859-1');
    response.end('äöü '.repeat(1_000), 'latin1');
  }

  /** Streams of other packages have what Node's own have, but are none. */
  @Get('foreign-stream')
  foreignStream(@Res() reply: FastifyReply): void {
    const source = Readable.from([Buffer.from(textOf(20_000))]);
    void reply.type('text/plain').send(new Proxy(source, { getPrototypeOf: () => Object.prototype }));
  }
}
let state: unknown;

describe.each(adapters)('compression on %s', (adapter) => {
  let test: TestApp;
  const start = async (): Promise<void> => {
    test = await startApp(adapter, { metadata: { controllers: [AloneController, CompressionController] } });
  };
  afterEach(() => test.close());
  const get = (path: string, headers = {}) => callAccepting(`${test.url}/${path}`, 'gzip', { headers });

  it('leaves a stream alone whose length the application has said, and encodes a whole body', async () => {
    await start();
    for (const path of ['length', 'shared-length', 'shared-length', ...(adapter === 'express' ? ['raw-length'] : [])]) {
      const { headers, text, raw } = await get(`alone/${path}`);
      const { 'content-encoding': coding, 'content-length': length, vary } = headers;
      expect([coding, length, vary, text], path).toEqual([
        'gzip',
        String(raw.byteLength),
        'accept-encoding',
        textOf(5_000),
      ]);
      expect(raw.byteLength).toBeLessThan(5_000);
    }
    const { headers, text } = await get('alone/download');
    expect([headers['content-encoding'], headers['content-length'], headers.vary, text]).toEqual([
      undefined,
      '5000',
      undefined,
      textOf(5_000),
    ]);
  });

  it('adds no `Vary` to a 304 whose 200 has none', async () => {
    await start();
    const { status, headers } = await get('alone/file', { 'if-none-match': '"v1"' });
    expect([status, headers.vary]).toEqual([304, undefined]);
  });

  it.runIf(adapter === 'express')('refuses the lists of headers that Node refuses', async () => {
    await start();
    const answer = await get('alone/refused');
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      500,
      ['ERR_INVALID_ARG_VALUE', expect.stringMatching(/^ERR_INVALID_(HTTP_TOKEN|ARG_TYPE)$/)],
    ]);
  });

  it.runIf(adapter === 'express')('keeps the status where Node refuses a header that came with it', async () => {
    await start();
    const answer = await get('alone/refused-value');
    expect([answer.status, answer.text]).toEqual([404, 'not found']);
  });

  it.runIf(adapter === 'fastify')("encodes streams that are none of Node's own", async () => {
    await start();
    const { headers, text } = await get('alone/foreign-stream');
    expect([headers['content-encoding'], text]).toEqual(['gzip', textOf(20_000)]);
  });

  it.runIf(adapter === 'express')(
    'answers HEAD of a text in another encoding with the headers of its GET',
    async () => {
      await start();
      for (const coding of ['gzip', 'identity']) {
        const answers = ['GET', 'HEAD'].map((method) => callAccepting(`${test.url}/alone/latin1`, coding, { method }));
        const [viaGet, viaHead] = await Promise.all(answers);
        expect(viaHead!.headers['etag']).toBe(viaGet!.headers['etag']);
        expect(viaHead!.headers['content-encoding']).toBe(viaGet!.headers['content-encoding']);
      }
    },
  );

  it.runIf(adapter === 'express')(
    'lets a response look ended while its body is encoded, and not be cut off by a server that closes',
    async () => {
      await start();
      expect((await get('alone/ended')).headers['content-encoding']).toBe('gzip');
      expect(state).toBe(true);
    },
  );
});

class Totals {
  @NoCompression()
  sum(): number {
    return 1;
  }
}

it.each(adapters)('@NoCompression() on a method that serves no route stops the boot, on %s', async (adapter) => {
  for (const perf of [{}, { compression: false }]) {
    await expect(startApp(adapter, { perf, metadata: { providers: [Totals] } })).rejects.toThrow(
      'PERF_ERR_DECORATOR: @NoCompression() on "Totals.sum" needs a route handler, got no route. Move it to the handler that answers, or to its controller.',
    );
  }
});

@NoCompression()
class Unencoded {}

@Injectable()
class UnencodedTotals extends Unencoded {}

it.each(adapters)(
  '@NoCompression() on a class without routes, or on its base, stops no boot, on %s',
  async (adapter) => {
    for (const perf of [{}, { enabled: false }]) {
      const metadata = { providers: [Unencoded, UnencodedTotals] };
      const { close } = await startApp(adapter, { perf, metadata });
      await close();
    }
  },
);
