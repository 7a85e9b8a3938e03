import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { supportedCodings } from '../../../src/compression/rules/accept-encoding.js';
import { acceptEncodingCases } from '../../fixtures/accept-encoding-cases.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows, textOf } from '../../fixtures/compression.controller.js';
import { call, callAccepting } from '../../fixtures/http-client.js';

const browser = 'gzip, deflate, br, zstd';

describe.each(adapters)('compression on %s', (adapter) => {
  describe('keeps to the rules of HTTP', () => {
    let test: TestApp;
    beforeAll(async () => {
      test = await startApp(adapter, { metadata: { controllers: [CompressionController] } });
    });
    afterAll(() => test.close());
    const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
      callAccepting(`${test.url}/c/${path}`, 'gzip', { headers, method });

    it.each(acceptEncodingCases)('negotiates Accept-Encoding "$header"', async ({ header, withZstd, without }) => {
      const headers = header === undefined ? {} : { 'accept-encoding': header };
      for (const path of ['/c/json/5000', '/c/stream/hello%20']) {
        const response = await call(test.url + path, { headers });
        const coding = response.headers['content-encoding'] ?? null;
        expect(coding, path).toBe(supportedCodings.includes('zstd') ? withZstd : without);
        expect(response.headers.vary, path).toBe('accept-encoding');
        expect(response.text).toBe(path.includes('json') ? JSON.stringify(rows(5_000)) : `hello ${textOf(50_000)}`);
      }
    });

    it('adds Vary once, in whatever case it was there, where another client would get another body', async () => {
      expect((await get('vary')).headers.vary).toBe('Origin, Accept-Encoding');
      expect((await call(`${test.url}/c/json/5000`)).headers.vary).toBe('accept-encoding');
      expect((await get('stream-tagged')).headers.vary).toBe('Accept-Encoding, Origin');
      for (const path of ['json/100', 'image', 'no-transform', 'off', 'events'])
        expect((await get(path)).headers.vary, path).toBeUndefined();
    });

    it('sends whole bodies with their encoded length, in one piece', async () => {
      for (const path of ['json/5000', 'json/100000', 'text/5000', 'buffer']) {
        const response = await get(path);
        expect(response.headers['content-encoding'], path).toBe('gzip');
        expect(response.headers['content-length'], path).toBe(String(response.raw.byteLength));
        expect(response.headers['transfer-encoding'], path).toBeUndefined();
        expect(response.raw.byteLength).toBeLessThan(response.body.byteLength);
      }
    });

    it.each(['image', 'no-transform', 'stream-no-transform', 'partial', 'off', 'off-stream', 'json/100'])(
      'leaves %s alone',
      async (path) => {
        const response = await get(path);
        expect(response.headers['content-encoding']).toBeUndefined();
        expect(response.text).toBe((await call(`${test.url}/c/${path}`)).text);
        expect(response.body.byteLength).toBeGreaterThan(50);
      },
    );

    it('leaves what is encoded already, bytes and header', async () => {
      const headers = { 'accept-encoding': 'gzip' };
      // The test client has no decoder for `x-own`: its complaint proves that the header came through.
      await expect(call(`${test.url}/c/encoded`, { headers })).rejects.toThrow('no decoder for x-own');
      const viaHead = await call(`${test.url}/c/encoded`, { headers, method: 'HEAD' });
      expect(viaHead.headers['content-length']).toBe(String('already encoded'.length * 200));
    });

    it('never makes a body larger', async () => {
      const response = await get('noise');
      expect(response.headers['content-encoding']).toBeUndefined();
      expect(response.raw.byteLength).toBe(3_000);
    });

    it.each([
      'json/5000',
      'json/100000',
      'json/100',
      'text/5000',
      'tagged',
      'buffer',
      'stream/hello',
      'image',
      'off',
      'missing',
    ])('answers HEAD of %s with the headers of GET and no body', async (path) => {
      const viaGet = await get(path);
      const viaHead = await get(path, {}, 'HEAD');
      expect(viaHead.raw.byteLength).toBe(0);
      expect(viaHead.status).toBe(viaGet.status);
      for (const name of ['vary', 'content-type']) expect(viaHead.headers[name], name).toEqual(viaGet.headers[name]);
      expect(viaHead.headers['content-encoding']).toBe(viaGet.headers['content-encoding']);
      // Fastify drops the body of a HEAD, and with it the tag that only the body tells.
      if (adapter === 'express' || path === 'tagged') expect(viaHead.headers.etag).toBe(viaGet.headers.etag);
      if (viaGet.headers['content-length'] === undefined) expect(viaHead.headers['content-length']).toBeUndefined();
      else expect([viaGet.headers['content-length'], undefined]).toContain(viaHead.headers['content-length']);
    });

    it('gives every representation its own ETag, and a 304 to who has it', async () => {
      const url = `${test.url}/c/json/60000`;
      const tags = new Set<string>();
      for (const coding of ['gzip', 'br', 'deflate', 'identity']) {
        const first = await callAccepting(url, coding);
        const etag = String(first.headers.etag);
        tags.add(etag);
        for (const method of adapter === 'express' ? ['GET', 'HEAD'] : ['GET']) {
          const headers = { 'if-none-match': `"other", ${etag}` };
          const again = await callAccepting(url, coding, { method, headers });
          expect(again.status, `${method} ${coding}`).toBe(304);
          expect(again.raw.byteLength).toBe(0);
          for (const name of ['content-length', 'transfer-encoding']) expect(again.headers[name]).toBeUndefined();
          expect(again.headers.etag, coding).toBe(etag);
          expect(again.headers.vary).toBe('accept-encoding');
        }
        const changed = await callAccepting(`${url}?seed=1`, coding, { headers: { 'if-none-match': etag } });
        expect(changed.status).toBe(200);
        const reload = await callAccepting(url, coding, {
          headers: { 'if-none-match': etag, 'cache-control': 'no-cache' },
        });
        expect(reload.status).toBe(200);
      }
      expect(tags.size).toBe(4);
      expect((await callAccepting(url, 'br', { headers: { 'if-none-match': '*' } })).status).toBe(304);
    });

    it("weakens the application's strong ETag when the body is encoded, and still answers 304 to it", async () => {
      for (const path of ['tagged', 'stream-tagged']) {
        expect((await get(path)).headers.etag, path).toBe('W/"v1;;gzip"');
        expect((await call(`${test.url}/c/${path}`)).headers.etag, path).toBe('"v1"');
      }
      for (const tag of ['"v1"', 'W/"v1"', 'W/"v1;;gzip"']) {
        const response = await get('tagged', { 'if-none-match': tag });
        expect(response.status).toBe(304);
        expect(response.headers['content-length']).toBeUndefined();
        // A cache looks for its 200 by the tag.
        expect(response.headers.etag).toBe(tag === 'W/"v1"' ? '"v1"' : tag);
      }
    });

    it('lets events through as they happen', async () => {
      const response = await get('events');
      expect(response.headers['content-encoding']).toBeUndefined();
      expect(response.text.match(/data: \{"n":\d\}/g)).toHaveLength(6);
      expect(response.chunksMs.length).toBeGreaterThanOrEqual(5);
    });

    it.each(supportedCodings)(
      'does not hold back the lines of a slow stream, and makes them smaller: %s',
      async (coding) => {
        const response = await callAccepting(`${test.url}/c/lines`, coding);
        expect(response.headers['content-encoding']).toBe(coding);
        expect(response.text.trim().split('\n')).toHaveLength(4);
        expect(response.chunksMs.at(-1)! - response.chunksMs[0]!).toBeGreaterThan(200);
        // Each line repeats the one before it.
        expect(response.raw.byteLength).toBeLessThan(180);
      },
    );

    // `80` and `(S` are what @fastify/compress takes for a deflate header.
    it.each(['80', '(S', 'x ', 'h', 'plain '])('streams text that begins with "%s" correctly', async (start) => {
      const response = await get(`stream/${encodeURIComponent(start)}`);
      expect(response.headers['content-encoding']).toBe('gzip');
      expect(response.text).toBe(start + textOf(50_000));
      expect(response.raw.byteLength).toBeLessThan(5_000);
    });

    it('leaves errors and empty bodies alone', async () => {
      const missing = await get('missing');
      expect(missing.status).toBe(404);
      expect(missing.headers['content-encoding'] ?? missing.headers.vary).toBeUndefined();
      expect(JSON.parse(missing.text)).toMatchObject({ statusCode: 404 });
      const empty = await get('empty');
      expect(empty.status).toBe(204);
      expect(empty.headers['content-encoding']).toBeUndefined();
      const unrouted = await callAccepting(`${test.url}/nowhere${'x'.repeat(2_000)}`, 'gzip');
      expect(unrouted.status).toBe(404);
      expect(unrouted.text).toContain('nowhere');
    });

    it('neither keeps nor tags what sets a cookie or is private', async () => {
      for (const path of ['cookie', 'private']) {
        const response = await get(path);
        expect(response.headers['content-encoding']).toBe('gzip');
        if (adapter === 'fastify') expect(response.headers.etag).toBeUndefined();
      }
    });

    it('compresses what is written around the framework', async () => {
      const response = await callAccepting(`${test.url}/c/manual`, browser);
      expect(response.text).toBe(textOf(3_000) + textOf(3_000));
      expect(response.headers['content-encoding']).toBe(supportedCodings[0]);
    });
  });

  it('offers the `encodings` that it is given, in their order', async () => {
    const perf = { compression: { encodings: ['deflate', 'br'] as const } };
    const test = await startApp(adapter, { perf, metadata: { controllers: [CompressionController] } });
    const { headers } = await callAccepting(`${test.url}/c/json/5000`, browser);
    await test.close();
    expect(headers['content-encoding']).toBe('deflate');
  });

  it.each([
    ['cache-control', 'no-transform', undefined, undefined],
    ['vary', 'Origin', 'gzip', 'Origin, accept-encoding'],
  ])('heeds the `%s` that middleware has put on the response', async (name, value, encoding, vary) => {
    const test = await startApp(adapter, {
      metadata: { controllers: [CompressionController] },
      beforeInit: (app) =>
        void app.use((_request: unknown, response: ServerResponse, next: () => void) => {
          response.setHeader(name, value);
          next();
        }),
    });
    const { headers } = await callAccepting(`${test.url}/c/json/5000`, 'gzip');
    await test.close();
    expect(headers['content-encoding']).toBe(encoding);
    expect(headers.vary).toBe(vary);
  });
});
