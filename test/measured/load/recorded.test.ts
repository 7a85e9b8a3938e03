import { Body, Controller, Get, HttpCode, Param, Post, UnauthorizedException, Req } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { record } from '../../../src/entries/record.js';
import { PerfService, type PerfRequest } from '../../../src/index.js';
import { settle } from '../../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { folder, run, runUntilNotVoid } from '../../fixtures/load-command.js';

@Controller()
class ShopController {
  @Get('items/:id')
  item(@Param('id') id: string, @Req() request: PerfRequest) {
    if (request.headers.authorization !== 'Bearer hunter2') throw new UnauthorizedException();
    return { id };
  }

  @Post('orders')
  @HttpCode(201)
  order(@Body() body: { items: number[] }) {
    return { count: body.items.length };
  }
}

const LONG = process.env['PERF_LONG'] !== undefined;

describe.each(LONG ? adapters : (['fastify'] as const))('a recording of %s', (adapter) => {
  let shop: TestApp;
  afterEach(() => shop.close());

  it('is replayed: with its sessions, its bodies and the header that it does not hold', async () => {
    const extensions = [
      record({
        directory: folder,
        maxBodyBytes: 1_024,
        allowQuery: ['q'],
        sessions: ({ headers }) => headers['x-session'] as string,
      }),
    ];
    const snapshotEndpoint = { authorize: ({ headers }: PerfRequest) => headers.authorization === 'Bearer ops' };
    shop = await startApp(adapter, {
      perf: { extensions, snapshotEndpoint },
      metadata: { controllers: [ShopController] },
    });
    const { recording } = shop.app.get(PerfService);
    recording.start({ forMs: 60_000 });
    const headers = { authorization: 'Bearer hunter2', 'content-type': 'application/json' };
    const body = JSON.stringify({ items: [1, 2] });
    for (let i = 0; i < 12; i++) {
      const own = { ...headers, 'x-session': `session ${i % 3}` };
      await (await fetch(`${shop.url}/items/${i}?q=é`, { headers: own })).arrayBuffer();
      await (await fetch(`${shop.url}/orders`, { method: 'POST', headers: own, body })).arrayBuffer();
    }
    await (await fetch(`${shop.url}/perf/snapshot`, { headers: { authorization: 'Bearer ops' } })).arrayBuffer();
    await settle(shop.app);
    const { file, requests } = await recording.stop();
    expect(requests).toBe(24);
    shop.sink.records.splice(0);

    const args = [file, '--target', shop.url, '--allow', 'POST /orders', '--header', 'Authorization: Bearer hunter2'];
    const ran = await run('replay', ...args);
    // On a busy machine it is void: all is sent even so.
    expect([0, 3]).toContain(ran.status);
    expect(ran.json).toMatchObject({ requests: 24, errorShare: 0, otherStatus: {} });
    const again = (await shop.requests()).slice(-24);
    expect(again.map(({ route, status }) => `${route} ${status}`).toSorted()).toEqual(
      [
        ...Array.from({ length: 12 }, () => '/items/:id 200'),
        ...Array.from({ length: 12 }, () => '/orders 201'),
      ].toSorted(),
    );

    const rampArgs = ['--from', file, '--allow', 'POST /orders', '--start', '8', '--steps', '1', '--hold', '500ms'];
    const view = ['--snapshot-header', 'authorization: Bearer ops', '--rest', '500ms'];
    const ramped = await runUntilNotVoid('ramp', shop.url, ...rampArgs, ...view, '--gate', 'p50<0.01ms');
    expect(ramped.stdout).toContain('have another status than was recorded, most 200 → 401. Is a header missing');
    expect(ramped.stdout).toMatch(/^why: nothing in the server's own figures\.$/m);
    expect(ramped.stdout).toMatch(/memory (below|within [\d.]+ % of) what it was\.$/m);
  }, 300_000);
});
