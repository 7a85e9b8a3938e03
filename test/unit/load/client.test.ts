import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Client } from '../../../packages/load/src/client.js';
import { makeGet } from '../../../packages/load/src/traffic.js';

it('holds no endless answer: one whose body is to be compared fails above 16 MiB', async () => {
  let sent = 0;
  const server = createServer((request, response) => {
    if (request.url === '/short') {
      response.end('short');
      return;
    }
    const write = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(2 ** 20))) sent += 1;
      sent += 1;
    };
    response.on('drain', write);
    write();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = new Client(new URL(`http://127.0.0.1:${port}`), 60_000, {});
  onTestFinished(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  expect((await client.send(makeGet('/short'), true)).body?.toString()).toBe('short');
  expect(await client.send(makeGet('/endless'), true)).toMatchObject({
    status: 0,
    failure: 'the answer is longer than 16 MiB',
    body: null,
  });
  expect(sent).toBeLessThan(200);
});
