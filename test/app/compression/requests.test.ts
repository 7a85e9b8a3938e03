import { createHook } from 'node:async_hooks';
import * as zlib from 'node:zlib';
import { Body, Controller, Post, Req } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { PerfModuleOptions } from '../../../src/index.js';
import { adapterOf, adapters, type Adapter } from '../../fixtures/app.js';
import { closeApps, listeningApp, type BuildOptions } from '../../fixtures/build-app.js';
import { call, type ClientResponse } from '../../fixtures/http-client.js';

@Controller('echo')
class EchoController {
  @Post()
  echo(@Body() body: unknown, @Req() request: IncomingMessage): unknown {
    return { body, coding: request.headers['content-encoding'] };
  }
}

const SENT = JSON.stringify({ text: 'a line of the body '.repeat(1_000) });
/** Its decoder allocates the window of 16 MB before the first byte comes out. */
const BOMB = zlib.brotliCompressSync(Buffer.alloc(20_000_000), {
  params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 9, [zlib.constants.BROTLI_PARAM_LGWIN]: 24 },
});
const BODIES: readonly (readonly [coding: string, body: Buffer])[] = [
  ['gzip', zlib.gzipSync(SENT)],
  ['GZIP', zlib.gzipSync(SENT)],
  ['x-gzip', zlib.gzipSync(SENT)],
  ['deflate', zlib.deflateSync(SENT)],
  ['br', zlib.brotliCompressSync(SENT)],
  ['br', BOMB],
  ['br', Buffer.from('no brotli at all')],
  ['gzip', zlib.gzipSync(SENT).subarray(0, 100)],
  ['zstd', Buffer.from(SENT)],
  ['identity', Buffer.from(SENT)],
  ['gzip, br', Buffer.from(SENT)],
  ['', Buffer.from(SENT)],
];

const post = (url: string, coding: string, body: Buffer): Promise<ClientResponse> =>
  call(url, { method: 'POST', headers: { 'content-type': 'application/json', 'content-encoding': coding }, body });

/** How many compressors and decompressors Node has opened meanwhile. */
async function openedBy<T>(work: () => Promise<T>): Promise<{ result: T; opened: number }> {
  let opened = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'ZLIB') opened += 1;
    },
  }).enable();
  try {
    return { result: await work(), opened };
  } finally {
    hook.disable();
  }
}

const metadata = { controllers: [EchoController] };
const start = async (adapter: Adapter, perf: PerfModuleOptions | null, options: BuildOptions = {}): Promise<string> =>
  (await listeningApp(adapterOf(adapter), { metadata, perf, ...options })).url;

afterEach(closeApps);

describe.each(adapters)('requests with a Content-Encoding, on %s', (adapter) => {
  it('are answered as without the module, on routes and on none', async () => {
    const [ours, bare] = [await start(adapter, {}), await start(adapter, null)];
    for (const path of ['/echo', '/nothing']) {
      for (const [coding, body] of BODIES) {
        const seen = await openedBy(() => post(ours + path, coding, body));
        const expected = await openedBy(() => post(bare + path, coding, body));
        expect([coding, seen.result.status, seen.result.text, seen.opened]).toEqual([
          coding,
          expected.result.status,
          expected.result.text,
          expected.opened,
        ]);
      }
    }
  });
});

describe('requests with a Content-Encoding, on fastify', () => {
  it('open no decoder, however many come at once', async () => {
    const url = await start('fastify', {});
    const bombs = (): Promise<ClientResponse[]> =>
      Promise.all(Array.from({ length: 40 }, () => post(`${url}/echo`, 'br', BOMB)));
    const { result, opened } = await openedBy(bombs);
    expect(new Set(result.map(({ status }) => status))).toEqual(new Set([400]));
    expect(opened).toBe(0);
  });

  it('are decoded where the application registers @fastify/compress itself', async () => {
    const url = await start(
      'fastify',
      {},
      {
        beforeInit: async (app) => {
          const instance = (app as unknown as NestFastifyApplication).getHttpAdapter().getInstance();
          await instance.register(import('@fastify/compress'), { globalCompression: false });
        },
      },
    );
    const body = zlib.gzipSync(SENT);
    const { result, opened } = await openedBy(() => post(`${url}/echo`, 'gzip', body));
    expect([result.status, JSON.parse(result.text)]).toMatchObject([201, { body: JSON.parse(SENT) }]);
    expect(opened).toBe(1);
  });
});
