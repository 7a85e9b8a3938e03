import { AsyncResource, executionAsyncId, executionAsyncResource } from 'node:async_hooks';
import { storedRequest, type RequestState } from '../../core/request-state.js';
import type { Channels } from '../channels.js';
import type { Call, Upstream } from '../upstream.js';
import { isExporter } from './exporters.js';
import { isRedirect } from './redirects.js';

/** The part of undici's request that is documented for its channels. */
interface UndiciRequest {
  readonly origin?: string | URL;
  readonly method: string;
  readonly path: string;
  /** Names and values in turn; of older versions one text. */
  readonly headers?: readonly string[] | string;
}

/** The global `fetch` and undici: https://undici.nodejs.org/#/docs/api/DiagnosticsChannel. */
export function hearUndici(channels: Channels, upstream: Upstream): void {
  // The channels after the first fire in the socket's context: told apart by the request itself.
  const calls = new WeakMap<UndiciRequest, Call>();
  const failing = new WeakSet<UndiciRequest>();
  const isQueued = hearQueues(channels);
  const end = (request: UndiciRequest, failed: boolean): void => {
    const call = calls.get(request);
    if (call === undefined) return;
    calls.delete(request);
    upstream.end(call, failed);
  };
  channels.on('undici:request:create', ({ request }: { request: UndiciRequest }) => {
    const { host } = new URL(String(request.origin));
    const { method, path } = request;
    if (isExporter(host, method, path) || isTunnel(request)) return;
    const caller = isQueued() ? null : upstream.caller();
    const call = upstream.begin({ kind: 'http', host, method, path }, caller);
    if (call !== null) calls.set(request, call);
  });
  channels.on('undici:client:sendHeaders', ({ request, headers }: { request: UndiciRequest; headers: string }) => {
    // What has become another protocol, by `undici.upgrade()`: no channel tells more of it.
    if (/\r\nupgrade: /i.test(headers)) end(request, false);
  });
  channels.on(
    'undici:request:headers',
    ({ request, response }: { request: UndiciRequest; response: { statusCode: number } }) => {
      const { statusCode } = response;
      if (statusCode >= 500) failing.add(request);
      if (isRedirect(statusCode)) end(request, false);
    },
  );
  channels.on('undici:request:trailers', ({ request }: { request: UndiciRequest }) =>
    end(request, failing.has(request)),
  );
  channels.on('undici:request:error', ({ request }: { request: UndiciRequest }) => end(request, true));
}

/**
 * Whether a call may have waited for a free connection of its pool: it begins in the context of the request that opened that.
 * A maker runs before that, in a promise's job, or in a resource that keeps its context, as undici 8 does; a queue in the socket's callbacks.
 */
function hearQueues(channels: Channels): () => boolean {
  /** With the callback in which they first opened one. */
  const openers = new WeakMap<RequestState, number>();
  let connects = false;
  const connected = (): void => {
    connects = true;
    queueMicrotask(() => (connects = false));
  };
  channels.on('undici:client:beforeConnect', () => {
    const opener = storedRequest();
    if (opener !== undefined && !openers.has(opener)) openers.set(opener, executionAsyncId());
  });
  // Undici 6 sends what has waited in the very job that connects.
  channels.on('undici:client:connected', connected);
  channels.on('undici:client:connectError', connected);
  return () => {
    const stored = storedRequest();
    const openedIn = stored && openers.get(stored);
    if (openedIn === undefined) return false;
    const [id, resource] = [executionAsyncId(), executionAsyncResource()];
    const isMakers = id === 0 || id === openedIn || resource instanceof Promise || resource instanceof AsyncResource;
    return connects || !isMakers;
  };
}

/** A WebSocket, or a proxy's tunnel: no channel tells of its end. The calls in a tunnel are heard of themselves. */
const isTunnel = ({ method, headers }: UndiciRequest): boolean =>
  method === 'CONNECT' || headers?.includes('sec-websocket-key') === true;
