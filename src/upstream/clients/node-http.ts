import type { ClientRequest, IncomingMessage } from 'node:http';
import { listenShared } from '../../core/shared-listener.js';
import type { Channels } from '../channels.js';
import type { Call, Upstream } from '../upstream.js';
import { isExporter } from './exporters.js';
import { isRedirect } from './redirects.js';

const HOST = /^[\w.:[\]-]{1,255}$/;
const DEFAULT_PORT: Readonly<Record<string, RegExp>> = { 'http:': /:80$/, 'https:': /:443$/ };

/** `node:http` and `node:https`: https://nodejs.org/api/diagnostics_channel.html#http. */
export function hearNodeHttp(channels: Channels, upstream: Upstream): void {
  const calls = new WeakMap<ClientRequest, Call>();
  const responses = new WeakMap<ClientRequest, IncomingMessage>();
  const failing = new WeakSet<ClientRequest>();
  const hasFailed = (request: ClientRequest): boolean =>
    failing.has(request) || responses.get(request)?.aborted === true;
  const end = (request: ClientRequest): void => {
    const call = calls.get(request);
    if (call === undefined) return;
    calls.delete(request);
    upstream.end(call, hasFailed(request));
  };
  const begin = ({ request }: { request: ClientRequest }): void => {
    if (calls.has(request)) return;
    const host = hostOf(request);
    const { method, path } = request;
    // What goes through a proxy's tunnel is heard of itself.
    if (method === 'CONNECT' || isExporter(host, method, path)) return;
    const call = upstream.begin({ kind: 'http', host, method, path });
    if (call === null) return;
    calls.set(request, call);
    // Who gives it up may have answered before Node tells.
    const isGivenUp = () => request.destroyed && responses.get(request)?.complete !== true;
    if (call.timed !== null) call.timed.hasFailed = () => hasFailed(request) || isGivenUp();
    // After the body, or a failure: Node has no channel for it.
    const ignoreClose = listenShared(request, 'close', () => {
      ignoreClose();
      end(request);
    });
  };
  // In the caller's context; older Nodes tell only when the request has its socket.
  channels.on('http.client.request.created', begin);
  channels.on('http.client.request.start', begin);
  channels.on('http.client.request.error', ({ request }: { request: ClientRequest }) => failing.add(request));
  channels.on(
    'http.client.response.finish',
    ({ request, response }: { request: ClientRequest; response: IncomingMessage }) => {
      if (isRedirect(response.statusCode)) return end(request);
      responses.set(request, response);
      if ((response.statusCode ?? 0) >= 500) failing.add(request);
    },
  );
}

/**
 * The host that was asked, with its port unless that is the protocol's own. Node tells the port in the header alone, which may
 * be somebody else's: a reverse proxy passes on what its client has sent.
 */
function hostOf(request: ClientRequest): string {
  const { host: asked, protocol } = request;
  const header = request.getHeader('host');
  const isOwn = typeof header === 'string' && header.replace(/:\d+$/, '').replace(/^\[|\]$/g, '') === asked;
  const host = isOwn ? header : asked;
  return HOST.test(host) ? host.toLowerCase().replace(DEFAULT_PORT[protocol] ?? /$^/, '') : 'unknown';
}
