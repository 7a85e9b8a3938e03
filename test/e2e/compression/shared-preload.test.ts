import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Logger, Param } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { adapters, startApp } from '../../fixtures/app.js';
import { CERTIFICATE, KEY } from '../../fixtures/certificate.js';
import { callAccepting } from '../../fixtures/http-client.js';

let made = 0;
afterEach(() => vi.restoreAllMocks());

@Controller('preloaded')
class PreloadedController {
  @Get()
  @SharedResponse({ ttlMs: 60_000, preload: true })
  preloaded(): unknown {
    made += 1;
    return { n: made };
  }

  @Get(':id')
  @SharedResponse({ ttlMs: 60_000, preload: true })
  one(@Param('id') id: string): unknown {
    return { id };
  }
}

describe.each(adapters)('a shared answer on %s', (adapter) => {
  it('that is preloaded says nothing of it when the application closes at once', async () => {
    made = 0;
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    for (let i = 0; i < 5; i++) {
      const closed = await startApp(adapter, { metadata: { controllers: [PreloadedController] } });
      await closed.close();
    }
    // A connection that is refused or reset is told in a turn to come.
    await delay(50);
    expect(warn.mock.calls.filter(([text]) => String(text).includes('was not preloaded'))).toEqual([]);
  });

  it('is preloaded where it is asked to, and says where it cannot be', async () => {
    made = 0;
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const test = await startApp(adapter, {
      metadata: { controllers: [PreloadedController] },
      beforeInit: (app) => void app.setGlobalPrefix('api'),
    });
    await expect.poll(() => made).toBe(1);
    expect((await callAccepting(`${test.url}/api/preloaded`, 'gzip')).text).toBe('{"n":1}');
    await test.close();
    expect(warn).toHaveBeenCalledWith(
      '@SharedResponse() on "PreloadedController.one" is not preloaded: `/api/preloaded/:id` has parameters. Remove `preload`.',
    );
  });
});

describe.each([
  ['without TLS', { http2: true }],
  ['with TLS', { http2: true, https: { key: KEY, cert: CERTIFICATE } }],
] as const)('@SharedResponse() on fastify with HTTP/2 %s', (_how, options) => {
  it('is preloaded', async () => {
    made = 0;
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const adapter: unknown = new FastifyAdapter(options as object);
    const test = await startApp('fastify', {
      metadata: { controllers: [PreloadedController] },
      adapter: adapter as AbstractHttpAdapter,
    });
    await expect.poll(() => made).toBe(1);
    await test.close();
    expect(warn.mock.calls.filter(([text]) => String(text).includes('was not preloaded'))).toEqual([]);
  });
});
