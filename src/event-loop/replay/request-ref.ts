import type { RequestRef } from '../../core/record.js';
import type { RequestState } from '../../core/request-state.js';
import { methodLabel } from '../../core/route.js';
import type { Guard } from '../guard.js';
import { curlOf, type ReplayRules } from './curl.js';
import { redactUrl } from './redact.js';
import type { SecretNames } from './secret-names.js';

/** `version-traceid-parentid-flags`, W3C Trace Context. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;

/** Express moves `url` while it walks mounted routers; what was sent stands in `originalUrl`. */
interface AnyRequest {
  originalUrl?: unknown;
  body?: unknown;
  socket?: { encrypted?: boolean };
}

const sentUrl = (state: RequestState): string => {
  const { originalUrl } = (state.request ?? {}) as AnyRequest;
  return typeof originalUrl === 'string' ? originalUrl : (state.request?.url ?? '');
};

/** The caller's trace, which a tracer of ours would have taken over. */
function traceIdSent(state: RequestState): string | null {
  const traceparent = state.request?.headers['traceparent'];
  return typeof traceparent === 'string' ? (TRACEPARENT.exec(traceparent)?.[1] ?? null) : null;
}

/** Names a request in a record, without its secrets. Never throws: what cannot be read is left out. */
export function requestRefOf(state: RequestState, secrets: SecretNames, guard: Guard): RequestRef {
  const { span } = state;
  const route = guard.read('the route', () => state.route, null);
  const method = guard.read('the method', () => state.request?.method, undefined);
  return {
    id: guard.read('the id', () => state.id, ''),
    method: method === undefined ? (route?.method ?? '_OTHER') : methodLabel(method),
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? null,
    url: guard.read('the URL', () => redactUrl(sentUrl(state), route?.pattern ?? null, secrets), ''),
    traceId: span?.traceId ?? guard.read('the trace', () => traceIdSent(state), null),
    // Not the one of the header: that is the caller's span.
    ...(span === null ? null : { spanId: span.spanId }),
  };
}

/** The curl line of a request; null for one that did not come over HTTP. */
export function replayOf(state: RequestState, rules: ReplayRules, secrets: SecretNames): string | null {
  const { request, route } = state;
  if (request === null) return null;
  const socket = (request as AnyRequest).socket;
  return curlOf(
    {
      method: methodLabel(request.method),
      url: sentUrl(state),
      pattern: route?.pattern ?? null,
      secure: socket?.encrypted === true,
      headers: request.headers,
      body: (state.frameworkRequest as AnyRequest | null)?.body,
    },
    rules,
    secrets,
  );
}
