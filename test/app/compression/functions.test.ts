import { Readable } from 'node:stream';
import { Controller, Get, Headers, Put, Res, StreamableFile } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { supportedCodings } from '../../../src/compression/rules/accept-encoding.js';
import { SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { rows, textOf } from '../../fixtures/compression.controller.js';
import { invoke } from '../../fixtures/function-platform.js';

let runs = 0;

@Controller('functions')
class FunctionsController {
  @Get('stream')
  stream(): StreamableFile {
    const chunks = Array.from({ length: 40 }, () => Buffer.from(textOf(5_000)));
    return new StreamableFile(Readable.from(chunks), { type: 'text/plain' });
  }

  @Get('shared')
  @SharedResponse({ ttlMs: 60_000 })
  shared(): unknown {
    return { run: ++runs };
  }

  @Get('document')
  document(@Res({ passthrough: true }) reply: { header(name: string, value: string): unknown }): unknown {
    reply.header('etag', '"v7"');
    return rows(5_000);
  }

  @Put('document')
  write(@Headers('if-match') wanted: string): string {
    return wanted;
  }
}

describe.each(adapters)('an adapter of a function platform before %s', (adapter) => {
  let test: TestApp;
  beforeAll(async () => {
    runs = 0;
    test = await startApp(adapter, { metadata: { controllers: [FunctionsController] } });
  });
  afterAll(() => test.close());
  /** Those adapters take zstd for text. */
  const accepting = { 'accept-encoding': 'gzip, zstd' };

  it('gets no zstd, and all of a stream, though its socket never says that it has room', async () => {
    const { headers, text } = await invoke(test.app, { url: '/functions/stream', headers: accepting });
    expect([headers['content-encoding'], text]).toEqual(['gzip', textOf(5_000).repeat(40)]);
  });

  it.runIf(supportedCodings.includes('zstd'))('gets zstd where the options name it', async () => {
    const perf = { compression: { encodings: ['zstd', 'gzip'] as const } };
    const named = await startApp(adapter, { perf, metadata: { controllers: [FunctionsController] } });
    try {
      const { headers } = await invoke(named.app, { url: '/functions/stream', headers: accepting });
      expect(headers['content-encoding']).toBe('zstd');
    } finally {
      await named.close();
    }
  });

  it('shares answers, though it counts the bytes of no body', async () => {
    for (let i = 0; i < 3; i++) expect((await invoke(test.app, { url: '/functions/shared' })).text).toBe('{"run":1}');
  });

  it('gives the application the tag that it gave, though it has no raw headers', async () => {
    const { headers } = await invoke(test.app, { url: '/functions/document', headers: accepting });
    const change = { 'if-match': String(headers['etag']), 'content-type': 'application/json' };
    const { text } = await invoke(test.app, { method: 'PUT', url: '/functions/document', headers: change, body: '{}' });
    expect([headers['etag'], text]).toEqual(['W/"v7;;gzip"', '"v7"']);
  });
});
