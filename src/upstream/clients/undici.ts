import { AsyncLocalStorage, AsyncResource, executionAsyncId, executionAsyncResource } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { storedRequest, type RequestState } from '../../request/request-state.js';
import { listenShared } from '../../core/shared-listener.js';
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
  const repeatable = new WeakSet<UndiciRequest>();
  const makers = new WeakMap<UndiciRequest, Caller>();
  const { isQueued, heard } = hearQueues(channels);
  /** What failed or moved may be sent again in this context. */
  const hear = (request: UndiciRequest): void =>
    heard(repeatable.has(request) && makers.get(request) !== storedRequest());
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
      if (statusCode >= 300) repeatable.add(request);
      hear(request);
      if (statusCode >= 500) failing.add(request);
      if (isRedirect(statusCode)) end(request, false);
    },
  );
  channels.on('undici:request:trailers', ({ request }: { request: UndiciRequest }) => {
    hear(request);
    end(request, failing.has(request));
  });
  channels.on('undici:request:error', ({ request }: { request: UndiciRequest }) => {
    repeatable.add(request);
    hear(request);
    end(request, true);
  });
}

/**
 * Whether undici may be sending what another request has asked for. It does so in the context of whoever opened, used or read
 * from a connection: where it is heard of right before, in its immediates and microtasks, and in a timer or a queue of undici 8
 * that sends again what has failed or moved.
 */
function hearQueues(channels: Channels): { isQueued: () => boolean; heard: (mayRetry?: boolean) => void } {
  /** In whose context undici has worked, and in whose it may send another's call again. */
  const users = new WeakSet<RequestState>();
  const retriers = new WeakSet<RequestState>();
  /** The scopes in which undici was heard of, until they end: one inside them is its maker's again. */
  const drainsIn = new Set<number>();
  const close = (): void => drainsIn.clear();
  const heard = (mayRetry = false): void => {
    const stored = storedRequest();
    if (stored !== undefined) (mayRetry ? retriers : users).add(stored);
    drainsIn.add(executionAsyncId());
    process.nextTick(close);
    queueMicrotask(close);
  };
  channels.on('undici:client:connected', ({ socket }: { socket: Socket }) => {
    heard();
    listenShared(socket, 'close', () => heard(), 'prependListener');
  });
  channels.on('undici:client:connectError', () => heard());
  // A bound function runs in a resource of the same class, as a handler behind an interceptor does: it is its maker's own.
  let tellsMicrotasks = false;
  const isMicrotask = (resource: object): boolean =>
    Object.getPrototypeOf(resource) === AsyncResource.prototype &&
    (!tellsMicrotasks || Object.hasOwn(resource, 'callback'));
  // Where nothing has a context, Node 24 gives a microtask no resource.
  const context = new AsyncLocalStorage<true>();
  const look = (): void => {
    tellsMicrotasks = Object.hasOwn(executionAsyncResource(), 'callback');
    context.disable();
  };
  context.run(true, () => queueMicrotask(look));
  return {
    isQueued: () => {
      if (drainsIn.has(executionAsyncId())) return true;
      const stored = storedRequest();
      if (stored === undefined) return false;
      const isUser = users.has(stored);
      users.add(stored);
      const resource = executionAsyncResource();
      if (retriers.has(stored)) return 'hasRef' in resource || resource instanceof AsyncResource;
      const isImmediate = 'hasRef' in resource && !('refresh' in resource);
      return isUser && (isImmediate || isMicrotask(resource));
    },
    heard,
  };
}

/** A WebSocket, or a proxy's tunnel: no channel tells of its end. The calls in a tunnel are heard of themselves. */
const isTunnel = ({ method, headers }: UndiciRequest): boolean =>
  method === 'CONNECT' || headers?.includes('sec-websocket-key') === true;
