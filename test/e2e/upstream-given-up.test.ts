import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get } from '@nestjs/common';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../scripts/redis.mjs';
import { adapters, startApp } from '../fixtures/app.js';

/** Answers `/1`, and nothing else. */
let server: Server;
let silent = '';
/** Nobody listens there. */
let closed = '';

beforeAll(async () => {
  server = createServer((request, response) => void (request.url === '/1' && response.end('answer')));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  silent = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  closed = `127.0.0.1:${await freePort()}`;
});
afterAll(() => void server.close());

const read = async (url: string): Promise<void> => {
  const [response] = await once(get(url), 'response');
  await once(response.resume(), 'end');
};

@Controller()
class GivenUpController {
  @Get('refused')
  async refused() {
    await read(`http://${closed}/`).catch(() => null);
    return {};
  }

  @Get('stopped')
  async stopped() {
    await read(`http://${silent}/1`);
    const request = get(`http://${silent}/`, { agent: false }).on('error', () => {});
    const [socket] = await once(request, 'socket');
    await once(socket, 'connect');
    request.destroy();
    return {};
  }
}

it.each(adapters)('on %s, calls of node:http are errors of a request that ends before Node tells', async (adapter) => {
  const perf = { context: true };
  const running = await startApp(adapter, { perf, metadata: { controllers: [GivenUpController] } });
  for (const path of ['refused', 'stopped']) await (await fetch(`${running.url}/${path}`)).text();
  const records = await running.requests();
  expect(records.map(({ upstream }) => upstream)).toMatchObject([
    [{ target: `http ${closed}`, calls: 1, errors: 1 }],
    [{ target: `http ${silent}`, calls: 2, errors: 1 }],
  ]);
  await running.close();
});
