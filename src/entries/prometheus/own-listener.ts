import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RawResponse } from '../../core/guarded.js';

export interface Listener {
  /** Null while the port is taken. */
  readonly port: number | null;
  close(): Promise<void>;
}

/** By path. */
type Answers = Readonly<Record<string, (request: IncomingMessage) => Promise<RawResponse>>>;

const NOT_FOUND: RawResponse = { status: 404, type: 'text/plain; charset=utf-8', body: 'Not Found\n' };
/** How often a port that is taken is tried again: the process before may be closing. */
const RETRY_MS = 1_000;

/**
 * A server of its own on the main thread. It keeps no process alive. A port that is taken is tried again each second until it is free or
 * the listener is closed, and `taken` is called once.
 */
export async function listen(
  at: { readonly port: number; readonly host?: string },
  answers: Answers,
  taken: () => void,
): Promise<Listener> {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = '', method } = request;
    const answer = method === 'GET' || method === 'HEAD' ? answers[url.split('?', 1)[0]!] : undefined;
    const { status, type, body } = answer === undefined ? NOT_FOUND : await answer(request);
    response.statusCode = status;
    response.setHeader('content-type', type);
    response.end(body);
  };
  const server = createServer((request, response) => void respond(request, response));
  // Exclusive: workers of a cluster would share the port, and answer in turn.
  const tryPort = (): unknown => server.unref().listen({ ...at, exclusive: true });
  tryPort();
  let retry: NodeJS.Timeout | null = null;
  try {
    await once(server, 'listening');
  } catch (error) {
    if (!isTaken(error)) throw error;
    taken();
    retry = setInterval(tryPort, RETRY_MS).unref();
    server.once('listening', () => clearInterval(retry!));
  }
  // A port that is still taken; or no file descriptor left for a connection, and the next caller tries again.
  server.on('error', () => {});
  return {
    get port() {
      return (server.address() as AddressInfo | null)?.port ?? null;
    },
    async close() {
      if (retry !== null) clearInterval(retry);
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const isTaken = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
