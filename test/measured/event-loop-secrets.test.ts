import { Controller, Get, Param, Post } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlockRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
import { Load } from '../fixtures/load.js';

const SECRET = 'hunter2-s3cr3t';

@Controller()
class VaultController {
  private block(): { done: boolean } {
    const end = performance.now() + 150;
    while (performance.now() < end);
    return { done: true };
  }

  @Get('vault/:token/:page')
  read(@Param('page') _page: string) {
    return this.block();
  }

  @Post('vault')
  write() {
    return this.block();
  }
}

const query = new URLSearchParams({
  page: '2',
  token: SECRET,
  api_key: SECRET,
  'user[password]': SECRET,
  filter: JSON.stringify({ name: 'x', credentials: { secret: SECRET } }),
  next: `https://me:${SECRET}@host.test/x`,
  back: `/x?access_token=${SECRET}`,
  tenant: SECRET,
}).toString();
const headers = {
  authorization: `Bearer ${SECRET}`,
  'proxy-authorization': `Basic ${SECRET}`,
  cookie: `sid=${SECRET}`,
  'x-api-key': SECRET,
  'x-auth-token': SECRET,
  'x-csrf-token': SECRET,
  'x-tenant': SECRET,
  referer: `https://host.test/?token=${SECRET}`,
  accept: `application/json; token=${SECRET}`,
  'user-agent': SECRET,
  'x-custom': SECRET,
  forwarded: `for=${SECRET}`,
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};
/** Headers that hold the secret and do not look it. */
const UNSAFE = ['user-agent', 'x-custom', 'forwarded'];
const json = JSON.stringify({
  name: 'Ada',
  password: SECRET,
  nested: [{ apiKey: SECRET, deep: { privateKey: SECRET, tenant: SECRET } }],
  payload: JSON.stringify({ token: SECRET }),
});
const form = `name=Ada&password=${SECRET}&a%5Bsecret%5D=${SECRET}`;

for (const adapter of adapters) {
  describe(`no secret is in any record on ${adapter}`, () => {
    let test: TestApp;
    let load: Load;
    afterAll(async () => {
      await load.close();
      await test.close();
    });

    /** The request's block, named or at least with the request among those that waited. */
    const blockOf = async (send: () => Promise<unknown>): Promise<BlockRecord> => {
      const deadlineMs = performance.now() + 40_000;
      for (;;) {
        test.sink.records.length = 0;
        await send();
        await settle(test.app);
        const all = JSON.stringify(test.sink.records);
        expect(all).not.toContain(SECRET);
        expect(all).not.toContain('hunter2');
        const block = test.sink.records.find((record) => record.kind === 'block' && record.request !== null);
        if (block !== undefined) return block as BlockRecord;
        if (performance.now() > deadlineMs) throw new Error('no block was attributed');
      }
    };
    beforeAll(async () => {
      const allowHeaders = Object.keys(headers).filter((name) => !UNSAFE.includes(name));
      const replay = { maxBodyBytes: 10_000, denyNames: ['tenant', 'x-tenant'], allowHeaders };
      test = await startApp(adapter, {
        perf: { eventLoop: { replay } },
        metadata: { controllers: [VaultController] },
      });
      load = await Load.start(test.port);
      for (let i = 0; i < 20; i++) await load.get('/nothing');
    });

    it('from headers, query and path', async () => {
      const block = await blockOf(() => load.get(`/vault/${SECRET}/7?${query}`, headers));
      expect(block.request!.url).toContain('/vault/[redacted]/7?page=2&token=[redacted]');
      expect(block.request!.traceId).toBe('0af7651916cd43dd8448eb211c80319c');
      expect(block.curl).toContain("-H 'authorization: [redacted]'");
    });

    it.each([
      ['JSON', { 'content-type': 'application/json' }, json, '"name":"Ada"'],
      ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, form, 'name=Ada'],
    ])('from a body of %s', async (_name, type, body, kept) => {
      const sent = { ...headers, ...type };
      const block = await blockOf(() => load.send({ method: 'POST', path: `/vault?${query}`, headers: sent, body }));
      expect(block.curl).toContain(kept);
      expect(block.curl).toContain('[redacted]');
    });
  });
}
