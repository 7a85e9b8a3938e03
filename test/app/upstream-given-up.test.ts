import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get } from '@nestjs/common';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { freePort } from '../../scripts/redis.mjs';
import { adapters, startApp } from '../fixtures/app.js';

/** Answers `/1`, `/moved` with a redirect to it, and nothing else. */
let server: Server;
let silent = '';
/** Nobody listens there. */
let closed = '';

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/1') response.end('answer');
    if (request.url === '/moved') response.writeHead(302, { location: '/1' }).end('moved '.repeat(40_000));
  });
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

  /** As axios follows a redirect. */
  @Get('moved')
  async moved() {
    const request = get(`http://${silent}/moved`).on('error', () => {});
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    request.destroy();
    response.destroy();
    await read(`http://${silent}${response.headers.location}`);
    return {};
  }
}

it.each(adapters)('on %s, calls of node:http are errors of a request that ends before Node tells', async (adapter) => {
  const running = await startApp(adapter, { metadata: { controllers: [GivenUpController] } });
  for (const path of ['refused', 'stopped']) await (await fetch(`${running.url}/${path}`)).text();
  const records = await running.requests();
  expect(records.map(({ upstream }) => upstream)).toMatchObject([
    [{ target: `http ${closed}`, calls: 1, errors: 1 }],
    [{ target: `http ${silent}`, calls: 2, errors: 1 }],
  ]);
  await running.close();
});

it.each(adapters)('on %s, a redirect that is followed and left unread is no error of node:http', async (adapter) => {
  const running = await startApp(adapter, { metadata: { controllers: [GivenUpController] } });
  await (await fetch(`${running.url}/moved`)).text();
  const [record] = await running.requests();
  const rows = running.app.get(PerfService).snapshot().upstream;
  await running.close();
  expect(record!.upstream).toMatchObject([{ target: `http ${silent}`, calls: 2, errors: 0 }]);
  expect(rows).toContainEqual(expect.objectContaining({ target: `http ${silent}`, calls: 2, errors: 0, inFlight: 0 }));
});
