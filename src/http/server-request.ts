import type { IncomingMessage, Server, ServerResponse } from 'node:http';

type RequestListener = (this: Server, request: IncomingMessage, response: ServerResponse) => void;

/**
 * Hears of each request before the framework and its middlewares do. A server with one listener keeps one, which calls the other:
 * with two, Node copies their list for each request.
 */
export function hearFirst(server: Server, hear: (request: IncomingMessage, response: ServerResponse) => void): void {
  const listeners = server.rawListeners('request') as RequestListener[];
  const [framework] = listeners;
  if (framework === undefined || listeners.length > 1) {
    server.prependListener('request', hear);
    return;
  }
  server.removeListener('request', framework);
  server.on('request', function (this: Server, request, response) {
    hear(request, response);
    framework.call(this, request, response);
  });
}
