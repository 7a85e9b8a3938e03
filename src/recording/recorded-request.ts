import type { IncomingMessage } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { REDACTED, type SecretNames } from '../core/secret-names.js';
import type { RequestTime } from '../core/record.js';
import type { RequestState } from '../request/request-state.js';
import { methodLabel } from '../request/routes.js';
import { parsedBody, safeBody, safeHeaders, safeUrl } from '../request/safe-request.js';

/** One line of a recording. Version 1: a reader refuses another. */
export interface RecordedRequest {
  v: 1;
  /** Start, epoch milliseconds. */
  t: number;
  id: string;
  method: string;
  /** Path and query. */
  url: string;
  /** The pattern; `''` where none matched. */
  route: string;
  headers: Record<string, string>;
  /** Parsed; null for none, or one that may not be told. */
  body: unknown;
  /** A hash; null for a request that stands alone. */
  session: string | null;
  status: number;
  durationMs: number;
  time: RequestTime | null;
  /** Bytes of the response's body as it was sent; null when its length is unknown. */
  sizeBytes: number | null;
  /** Hash of the JSON response's fields and their types; null for another response. */
  shape: string | null;
  /** Paths of parts that are left out or replaced: `'headers.authorization'`, `'url'`, `'body.card'`. */
  redacted: string[];
}

/** A handler's answer. */
export interface Answer {
  /** The framework's response: Fastify keeps headers there. */
  readonly response: { getHeader(name: string): unknown };
  readonly shape: string | null;
}

export interface RedactionRules {
  readonly secrets: SecretNames;
  readonly allowHeaders: readonly string[];
  readonly maxBodyBytes: number;
}

/** A request that has ended, without its secrets. */
export function recordedRequest(
  state: RequestState,
  startedAt: number,
  session: string | null,
  answer: Answer | null,
  { secrets, allowHeaders, maxBodyBytes }: RedactionRules,
): RecordedRequest {
  const headers = state.request!.headers;
  const url = safeUrl(state, secrets);
  const body = parsedBody(state);
  const safe = safeBody(headers, body, maxBodyBytes, secrets);
  const told = safeHeaders(headers, allowHeaders, secrets);
  const untold = new Set(told.filter(([, value]) => value === REDACTED).map(([name]) => name));
  for (const name of Object.keys(headers)) if (secrets.isSecret(name) && !secrets.isSecretValue(name)) untold.add(name);
  return {
    v: 1,
    t: Math.round(startedAt),
    id: secrets.isSecretValue(state.id) ? REDACTED : state.id,
    method: methodLabel(state.request!.method),
    url,
    route: state.pattern ?? '',
    headers: Object.fromEntries(told),
    body: safe?.data ?? null,
    session,
    status: state.status,
    durationMs: rounded(state.endedMs - state.startedMs),
    time: state.timing?.time ?? null,
    sizeBytes: sizeOf(state, answer),
    shape: answer?.shape ?? null,
    redacted: [
      ...[...untold].toSorted().map((name) => `headers.${name}`),
      ...(url.includes(REDACTED) || url.endsWith('…') ? ['url'] : []),
      ...(safe === null ? (hasBody(state, body) ? ['body'] : []) : redactedPaths(safe.data, 'body')),
    ],
  };
}

/** Uploads are read by the handler's own code: there may be none that is parsed, or only a part of it. */
function hasBody({ request }: RequestState, parsed: unknown): boolean {
  const { headers, stream }: Request = request!;
  const length = headers['content-length'];
  return (
    Number(length) > 0 ||
    headers['transfer-encoding'] !== undefined ||
    // An HTTP/2 body needs no length header: the request has a type, and its stream goes on after the headers.
    (length === undefined && headers['content-type'] !== undefined && stream?.endAfterHeaders === false) ||
    (parsed !== undefined && parsed !== null && !isEmpty(parsed))
  );
}

type Request = IncomingMessage & { readonly stream?: ServerHttp2Stream };

/** A parser of bodies leaves `{}` for a request without one. */
const isEmpty = (body: unknown): boolean => typeof body === 'object' && body !== null && Object.keys(body).length === 0;

function* redactedPaths(data: unknown, path: string): Generator<string> {
  if (data === REDACTED) yield path;
  if (typeof data !== 'object' || data === null) return;
  for (const [name, value] of Object.entries(data))
    yield* redactedPaths(value, Array.isArray(data) ? `${path}[]` : `${path}.${name}`);
}

function sizeOf({ request, response }: RequestState, answer: Answer | null): number | null {
  if (request!.method === 'HEAD') return 0;
  const length = Number((answer?.response ?? response)?.getHeader('content-length') ?? NaN);
  return Number.isInteger(length) ? length : null;
}

const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000;
