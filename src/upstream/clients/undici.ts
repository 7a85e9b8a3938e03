import { AsyncResource, executionAsyncResource } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { storedRequest } from '../../core/request-state.js';
import type { Channels } from '../channels.js';
import type { Call, Caller, Upstream } from '../upstream.js';
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
  const makers = new WeakMap<UndiciRequest, Caller>();
  const { isQueued, answered } = hearQueues(channels);
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
    makers.set(request, caller);
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
  channels.on('undici:request:trailers', ({ request }: { request: UndiciRequest }) => {
    // A redirect has ended before: undici's interceptor follows it here, in the context of its maker or of another request.
    answered(!calls.has(request) && makers.get(request) === storedRequest());
    end(request, failing.has(request));
  });
  channels.on('undici:request:error', ({ request }: { request: UndiciRequest }) => end(request, true));
}

/**
 * Whether undici may be sending what has waited for a connection of its pool: it does so in the context of who opened that,
 * or reads from it. Undici 8 keeps the maker's, in an AsyncResource.
 */
function hearQueues(channels: Channels): { isQueued: () => boolean; answered: (followed: boolean) => void } {
  let drains = false;
  const open = (): void => void (drains = true);
  const close = (): void => void (drains = false);
  /** Until the callback ends, or the promise's job. */
  const openForJob = (): void => {
    open();
    process.nextTick(close);
    queueMicrotask(close);
  };
  channels.on('undici:client:connected', ({ socket }: { socket: Socket }) => {
    openForJob();
    socket.prependOnceListener('close', open).once('close', close);
  });
  channels.on('undici:client:connectError', openForJob);
  channels.on('undici:request:headers', openForJob);
  return {
    isQueued: () => drains && !(executionAsyncResource() instanceof AsyncResource),
    // A connection for several calls at a time takes its next one right here, each other in an immediate that undici sets.
    answered: (followed) => {
      if (followed) close();
      else openForJob();
      setImmediate(open);
      process.nextTick(setImmediate, close);
    },
  };
}

/** A WebSocket, or a proxy's tunnel: no channel tells of its end. The calls in a tunnel are heard of themselves. */
const isTunnel = ({ method, headers }: UndiciRequest): boolean =>
  method === 'CONNECT' || headers?.includes('sec-websocket-key') === true;
