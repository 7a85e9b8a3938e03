import { createHash } from 'node:crypto';
import { Controller, Get, Header } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { textOf } from '../../fixtures/compression.controller.js';
import { callAccepting, type ClientResponse } from '../../fixtures/http-client.js';

const tagOf = (body: unknown): string => `"${createHash('sha1').update(String(body)).digest('base64')}"`;
let runs = 0;
let seen: unknown;

@Controller('conditions')
class ConditionsController {
  @Get('shared')
  @SharedResponse({ ttlMs: 60_000 })
  @Header('content-type', 'text/plain')
  shared(): string {
    runs++;
    return textOf(5_000);
  }

  @Get('image')
  @Header('content-type', 'image/png')
  image(): string {
    return textOf(5_000);
  }

  @Get('own')
  @Header('content-type', 'text/plain')
  own(): string {
    return textOf(5_000);
  }
}

describe('a hook of `main.ts` that answers conditions, as `@fastify/etag` does', () => {
  let test: TestApp;
  beforeEach(async () => {
    runs = 0;
    test = await startApp('fastify', {
      metadata: { controllers: [ConditionsController] },
      beforeInit: (app) => {
        const fastify = app.getHttpAdapter().getInstance() as FastifyInstance;
        fastify.addHook('onSend', (request, reply, payload, done) => {
          const tag = reply.getHeader('etag') ?? tagOf(payload);
          reply.header('etag', tag);
          const given = request.headers['if-none-match'];
          if (given !== tag && given !== `W/${String(tag)}`) return done(null, payload);
          reply.code(304);
          done(null, '');
        });
        fastify.addHook('onResponse', (request, _reply, done) => {
          seen = request.headers['if-none-match'];
          done();
        });
      },
    });
  });
  afterEach(() => test.close());
  const get = (path: string, headers: Record<string, string> = {}): Promise<ClientResponse> =>
    callAccepting(`${test.url}/conditions/${path}`, 'gzip', { headers });

  it('shares the answer that a client has already', async () => {
    const has = { 'if-none-match': tagOf(textOf(5_000)) };
    const answers = await Promise.all([get('shared', has), get('shared', has)]);
    answers.push(await get('shared', has), await get('shared'));
    expect(answers.map(({ status }) => status)).toEqual([304, 304, 304, 200]);
    expect([runs, answers.at(-1)!.text]).toEqual([1, textOf(5_000)]);
  });

  it.each(['own', 'shared'])('gets the `Vary` and the tag of its 200 on a 304: %s', async (path) => {
    const { headers } = await get(path);
    const etag = `W/${tagOf(textOf(5_000)).slice(0, -1)};;gzip"`;
    expect(headers).toMatchObject({ etag, vary: 'accept-encoding', 'content-encoding': 'gzip' });
    const again = await get(path, { 'if-none-match': etag });
    expect([again.status, again.headers.etag, again.headers.vary]).toEqual([304, etag, 'accept-encoding']);
  });

  it('adds no `Vary` to the 304 of what is never encoded', async () => {
    const { headers } = await get('image');
    const again = await get('image', { 'if-none-match': String(headers.etag) });
    expect([again.status, headers.vary, again.headers.vary]).toEqual([304, undefined, undefined]);
  });

  it('does not keep from others what the client has sent', async () => {
    await get('shared', { 'if-none-match': '"other"' });
    await expect.poll(() => seen).toBe('"other"');
  });
});
