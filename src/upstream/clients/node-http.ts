import type { ClientRequest, IncomingMessage } from 'node:http';
import { listenShared } from '../../core/shared-listener.js';
import type { Channels } from '../channels.js';
import type { Call } from '../request-time.js';
import type { Upstream } from '../upstream.js';
import type { IsExport } from './exporters.js';

const DEFAULT_PORT: Readonly<Record<string, RegExp>> = { 'http:': /:80$/, 'https:': /:443$/ };

/** Subscribes to `node:http` and `node:https`: https://nodejs.org/api/diagnostics_channel.html#http. A call ends with the head. */
export function subscribeNodeHttp(channels: Channels, upstream: Upstream, isExport: IsExport): void {
  const CALL = Symbol('perf:call');
  type Known = ClientRequest & { [CALL]?: Call | null };
  const end = (request: Known, failed: boolean): void => request[CALL]?.end(failed);
  const begin = ({ request }: { request: Known }): void => {
    if (request[CALL] !== undefined) return;
    const host = findHost(request);
    const { method, path } = request;
    // Calls inside a proxy's tunnel have their own events; Node publishes no answer to an upgrade.
    const isTunnel = method === 'CONNECT' || request.hasHeader('upgrade');
    request[CALL] = null;
    if (isTunnel || isExport(host, path)) return;
    const target = upstream.targets.find('http', 'http', host, method, path);
    const call = upstream.begin(target, `${method} ${path}`);
    if (call === null) return;
    request[CALL] = call;
    // The request may end between the abort of a call and Node's event for it.
    call.hasFailed = () => request.destroyed;
    const removeListener = listenShared(request, 'close', () => {
      removeListener();
      end(request, true);
    });
  };
  // `created` comes in the caller's context; older versions of Node publish `start` alone, once the request has a socket.
  channels.on('http.client.request.created', begin);
  channels.on('http.client.request.start', begin);
  channels.on('http.client.request.error', ({ request }: { request: ClientRequest }) => end(request, true));
  channels.on(
    'http.client.response.finish',
    ({ request, response }: { request: ClientRequest; response: IncomingMessage }) =>
      end(request, (response.statusCode ?? 0) >= 500),
  );
}

/** Reads host and port, without a default port. Only the `host` header has the port; a reverse proxy may send its client's there. */
function findHost(request: ClientRequest): string {
  const { host: asked, protocol } = request;
  const header = request.getHeader('host');
  const isOwn = typeof header === 'string' && header.replace(/:\d+$/, '').replace(/^\[|\]$/g, '') === asked;
  return (isOwn ? header : asked).toLowerCase().replace(DEFAULT_PORT[protocol] ?? /$^/, '');
}
