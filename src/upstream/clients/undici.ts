import type { Channels } from '../channels.js';
import type { Call } from '../request-time.js';
import type { Upstream } from '../upstream.js';
import type { IsExport } from './exporters.js';

/** The part of undici's request that is documented for its channels. */
interface UndiciRequest {
  readonly origin?: string | URL;
  readonly method: string;
  readonly path: string;
  /** Names and values in turn; a text in older versions. */
  readonly headers?: readonly string[] | string;
  readonly upgrade?: string | boolean | null;
}

/**
 * Subscribes to the global `fetch` and undici: https://undici.nodejs.org/#/docs/api/DiagnosticsChannel. A call ends with the head
 * of its answer, so a body that is cancelled or never read is no error.
 */
export function subscribeUndici(channels: Channels, upstream: Upstream, isExport: IsExport): void {
  // Later channels publish in the socket's context, so undici's request carries the call: a weak map costs more than the rest.
  const CALL = Symbol('perf:call');
  type Known = UndiciRequest & { [CALL]?: Call | null };
  channels.on('undici:request:create', ({ request }: { request: Known }) => {
    const { method, path } = request;
    const host = findHost(String(request.origin));
    if (isTunnel(request) || isExport(host, path)) return;
    const target = upstream.targets.find('http', 'http', host, method, path);
    request[CALL] = upstream.begin(target, method === 'GET' ? path : `${method} ${path}`);
  });
  channels.on(
    'undici:request:headers',
    ({ request, response: { statusCode } }: { request: Known; response: { statusCode: number } }) => {
      // 102 and 103 come before the head.
      if (statusCode >= 200) request[CALL]?.end(statusCode >= 500);
    },
  );
  channels.on('undici:request:error', ({ request }: { request: Known }) => request[CALL]?.end(true));
}

/** Hosts of the last origins: reading a URL takes longer than all else of a call. */
const hosts = new Map<string, string>();
const MAX_HOSTS = 256;

function findHost(origin: string): string {
  const known = hosts.get(origin);
  if (known !== undefined) return known;
  if (hosts.size >= MAX_HOSTS) hosts.clear();
  const { host } = new URL(origin);
  hosts.set(origin, host);
  return host;
}

/** A WebSocket, an upgrade or a proxy's tunnel: no channel publishes their end. Calls inside a tunnel have their own channels. */
const isTunnel = ({ method, headers, upgrade }: UndiciRequest): boolean =>
  method === 'CONNECT' || Boolean(upgrade) || headers?.includes('sec-websocket-key') === true;
