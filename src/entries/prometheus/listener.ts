import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RawResponse } from '../../core/guarded.js';

export interface Listener {
  readonly port: number;
  close(): Promise<void>;
}

/** A server of its own for one path. It keeps no process alive. */
export async function listen(
  port: number,
  path: string,
  answer: (request: IncomingMessage) => Promise<RawResponse>,
): Promise<Listener> {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked = request.url?.split('?', 1)[0] === path && /^(GET|HEAD)$/.test(request.method ?? '');
    const { status, type, body } = asked
      ? await answer(request)
      : { status: 404, type: 'text/plain; charset=utf-8', body: 'Not Found\n' };
    response.statusCode = status;
    response.setHeader('content-type', type);
    response.end(body);
  };
  const server = createServer((request, response) => void respond(request, response));
  server.unref().listen(port);
  await once(server, 'listening');
  // Such as no file descriptor left for a connection: the next scrape tries again.
  server.on('error', () => {});
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
