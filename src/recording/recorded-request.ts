import type { IncomingMessage } from 'node:http';
import type { RequestTime } from '../core/record.js';
import { REDACTED, type SecretNames } from '../core/secret-names.js';
import type { RequestState } from '../request/request-state.js';
import { methodLabel } from '../request/routes.js';
import { parsedBody, safeBody, safeHeaders, safeUrl } from '../request/safe-request.js';
import { allowedQuery, isPersonal } from './allowed-query.js';

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
  /** Parsed; null without one, or where bodies are not recorded. */
  body: unknown;
  /** A hash; null for a request without one. */
  session: string | null;
  status: number;
  durationMs: number;
  time: RequestTime | null;
  /** Paths of parts that are left out or replaced: `'headers.authorization'`, `'url'`, `'body.card'`. */
  redacted: string[];
}

export interface RecordingRules {
  readonly secrets: SecretNames;
  readonly allowHeaders: readonly string[];
  readonly allowQuery: readonly string[];
  readonly maxBodyBytes: number;
}

/** Makes the line of a request that has ended. */
export function recordedRequest(
  state: RequestState,
  startedAt: number,
  session: string | null,
  { secrets, allowHeaders, allowQuery, maxBodyBytes }: RecordingRules,
): RecordedRequest {
  const { headers, method } = state.request!;
  const hides = (name: string, value: unknown): boolean => !allowQuery.includes(name) && isPersonal(value);
  const url = allowedQuery(safeUrl(state, secrets, hides), allowQuery);
  const body = parsedBody(state);
  const safe = safeBody(headers, body, maxBodyBytes, secrets);
  const allowed = safeHeaders(headers, allowHeaders, secrets);
  const hidden = new Set(allowed.filter(([, value]) => value === REDACTED).map(([name]) => name));
  for (const name of Object.keys(headers)) if (secrets.isSecret(name) && !secrets.isSecretValue(name)) hidden.add(name);
  return {
    v: 1,
    t: Math.round(startedAt),
    id: secrets.isSecretValue(state.id) ? REDACTED : state.id,
    method: methodLabel(method),
    url,
    route: state.pattern ?? '',
    headers: Object.fromEntries(allowed),
    body: safe?.data ?? null,
    session,
    status: state.status,
    durationMs: Math.round((state.endedMs - state.startedMs) * 1_000) / 1_000,
    time: state.timing?.time ?? null,
    redacted: [
      ...[...hidden].toSorted().map((name) => `headers.${name}`),
      ...(url.includes(REDACTED) || url.endsWith('…') ? ['url'] : []),
      ...(safe === null ? (hasBody(state.request!, body) ? ['body'] : []) : redactedPaths(safe.data, 'body')),
    ],
  };
}

/** An upload is read by the handler's own code, so that no body may have been parsed; parsers leave `{}` for a request without one. */
const hasBody = ({ headers }: IncomingMessage, parsed: unknown): boolean =>
  Number(headers['content-length']) > 0 ||
  headers['transfer-encoding'] !== undefined ||
  Object.keys(parsed ?? {}).length > 0;

function* redactedPaths(data: unknown, path: string): Generator<string> {
  if (data === REDACTED) yield path;
  if (typeof data !== 'object' || data === null) return;
  for (const [name, value] of Object.entries(data))
    yield* redactedPaths(value, Array.isArray(data) ? `${path}[]` : `${path}.${name}`);
}
