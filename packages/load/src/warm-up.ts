import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from './client.js';
import { runOpenLoop } from './open-loop.js';
import { evenly } from './pacer.js';
import { makeGet } from './traffic.js';

const REQUEST = makeGet('/');

/** Code that V8 compiles while it runs starts late. So the generator first runs against a server of its own, which the target does not see. */
export async function warmUp(): Promise<void> {
  const server = createServer((_, response) => response.end('{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = new Client(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), 5_000, {});
  await runOpenLoop({
    offsetsMs: evenly(1_000, 300),
    requestAt: () => REQUEST,
    send: (request, index) => client.send(request, index % 2 === 0),
  });
  await client.close();
  await new Promise((resolve) => server.close(resolve));
}
