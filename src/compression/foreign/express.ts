import { createServer, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { PROBE_BODY } from './probe-body.js';

type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;
interface Layer {
  readonly name: string;
  readonly handle: Middleware;
}
interface ExpressWithRouter {
  readonly router?: { readonly stack?: readonly Layer[] };
}

/** The `compression` middleware that the application has registered itself. */
export function foreignOnExpress(express: ExpressWithRouter): readonly Middleware[] {
  return (express.router?.stack ?? []).filter(({ name }) => name === 'compression').map(({ handle }) => handle);
}

/**
 * What a middleware makes of {@link PROBE_BODY} for a client that takes brotli: tried alone, on a server of its own on the
 * loopback interface that is gone afterwards, so that neither the application nor anybody outside sees a request.
 */
export async function probeMiddleware(middleware: Middleware): Promise<{ coding: string | undefined; body: Buffer }> {
  const answer: RequestListener = (request, response) => {
    middleware(request, response, () => {
      response.setHeader('content-type', 'application/json');
      response.end(PROBE_BODY);
    });
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const options = { host: '127.0.0.1', port, agent: false, timeout: 5_000, headers: { 'accept-encoding': 'br' } };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = get(options, resolve).once('error', reject);
      request.once('timeout', () => request.destroy(new Error('it did not answer within 5 seconds')));
    });
    return { coding: response.headers['content-encoding'], body: await buffer(response) };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
