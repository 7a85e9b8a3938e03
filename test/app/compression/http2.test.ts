import { connect, type IncomingHttpHeaders } from 'node:http2';
import { Controller, Get, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { adapterOf, startApp, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { decode } from '../../fixtures/decode.js';

let runs = 0;

@Controller()
class LargeController {
  /** Fastify writes more than 64 KiB in pieces. */
  @Get('own')
  own(@Query('bytes') bytes: string): unknown {
    return rows(Number(bytes));
  }

  /** Node sends no body with 205, and so no length of one may be told. */
  @Get('reset')
  reset(@Res() reply: FastifyReply): void {
    const response = reply.hijack().raw;
    response.statusCode = 205;
    response.end('a form '.repeat(500));
  }

  @Get('shared')
  @SharedResponse({ ttlMs: 60_000 })
  shared(@Query('bytes') bytes: string): unknown {
    runs += 1;
    return rows(Number(bytes));
  }
}

describe('bodies over HTTP/2 on fastify', () => {
  let test: TestApp;
  beforeEach(async () => {
    runs = 0;
    test = await startApp('fastify', {
      metadata: { controllers: [LargeController] },
      adapter: adapterOf('fastify', { http2: true }),
    });
  });
  afterEach(() => test.close());

  const ask = (path: string, coding: string): Promise<{ headers: IncomingHttpHeaders; text: string }> =>
    new Promise((resolve, reject) => {
      const client = connect(test.url);
      const chunks: Buffer[] = [];
      let headers: IncomingHttpHeaders = {};
      const stream = client.request({ ':path': path, 'accept-encoding': coding });
      stream.on('response', (head) => (headers = head)).on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('error', reject).once('end', () => {
        client.close();
        const body = decode(headers['content-encoding'], Buffer.concat(chunks));
        resolve({ headers, text: body.toString() });
      });
      stream.end();
    });

  it.each([2_000, 60_000, 70_000, 400_000])('of about %s bytes are encoded, tagged and shared', async (bytes) => {
    const text = JSON.stringify(rows(bytes));
    for (const path of ['own', 'shared']) {
      for (const coding of ['br', 'gzip', 'identity', 'br']) {
        const { headers, text: received } = await ask(`/${path}?bytes=${bytes}`, coding);
        expect(received).toBe(text);
        expect(headers['content-encoding']).toBe(coding === 'identity' ? undefined : coding);
        expect(headers.etag).toMatch(coding === 'identity' ? /^"/ : new RegExp(`;;${coding}"$`));
      }
    }
    expect(runs).toBe(1);
  });

  it('have no length where the status allows no body', async () => {
    const { headers, text } = await ask('/reset', 'br');
    expect([headers[':status'], headers['content-length'], text]).toEqual([205, undefined, '']);
  });
});
