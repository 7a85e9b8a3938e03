import { printable } from '../../core/printable.js';
import type { RequestState } from '../../core/request-state.js';
import { methodLabel } from '../../core/route.js';
import { redactData, redactQuery, redactUrl, REDACTED, type SecretNames } from './redact.js';

/** Headers that change what a handler does and say nothing about who asked. */
const ALLOWED_HEADERS = ['accept', 'accept-encoding', 'accept-language', 'content-type', 'range'] as const;

/** A longer header is no part of what a handler decides by, and it would fill the log. */
const MAX_HEADER_LENGTH = 512;

/** What a curl line is made from. */
export interface ReplayRequest {
  readonly method: string;
  /** As it was sent: path and query. */
  readonly url: string;
  /** The route's pattern, or null. */
  readonly pattern: string | null;
  readonly secure: boolean;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The parsed body; undefined when there was none, or it is still unread. */
  readonly body: unknown;
}

export interface ReplayRules {
  readonly allowHeaders: readonly string[];
  /** 0: no body. */
  readonly maxBodyBytes: number;
}

/** Express moves `url` while it walks mounted routers; what was sent stands in `originalUrl`. */
interface AnyRequest {
  originalUrl?: unknown;
  body?: unknown;
  socket?: { encrypted?: boolean };
}

/** Path and query, as the client sent them. */
export const sentUrl = (state: RequestState): string => {
  const { originalUrl } = (state.request ?? {}) as AnyRequest;
  return typeof originalUrl === 'string' ? originalUrl : (state.request?.url ?? '');
};

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

/** A curl line that sends a request again, without its secrets. */
export function curlOf(request: ReplayRequest, rules: ReplayRules, secrets: SecretNames): string {
  const { method, headers } = request;
  const host = safeHost(headers['host'] ?? headers[':authority']);
  const url = `${request.secure ? 'https' : 'http'}://${host}${redactUrl(request.url, request.pattern, secrets)}`;
  const words = ['curl'];
  if (method === 'HEAD') words.push('--head');
  else if (method !== 'GET') words.push('-X', quote(method));
  // Brackets and braces in a URL are ranges to curl.
  words.push('--globoff', quote(url));
  const allowed = new Set<string>([...ALLOWED_HEADERS, ...rules.allowHeaders.map((name) => name.toLowerCase())]);
  for (const [name, given] of Object.entries(headers)) {
    if (!allowed.has(name) || given === undefined) continue;
    const value = Array.isArray(given) ? given.join(', ') : String(given);
    const short = value.length <= MAX_HEADER_LENGTH;
    const safe = short && !secrets.isSecret(name) && !secrets.isSecretValue(value) && !namesSecret(value, secrets);
    words.push('-H', quote(`${name}: ${safe ? printable(value, MAX_HEADER_LENGTH) : REDACTED}`));
  }
  const body = bodyOf(request, rules.maxBodyBytes, secrets);
  if (body !== null) words.push('--data-raw', quote(body));
  return words.join(' ');
}

/** `text` as one word of a POSIX shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function bodyOf({ headers, body }: ReplayRequest, maxBytes: number, secrets: SecretNames): string | null {
  if (maxBytes === 0 || typeof body !== 'object' || body === null) return null;
  // A body of unknown or of too great a length is not looked at.
  const length = Number(headers['content-length']);
  if (!(length <= maxBytes)) return null;
  const redacted = redactData(body, secrets);
  if (redacted === null) return null;
  const type = String(headers['content-type'] ?? '');
  const isForm = type.startsWith('application/x-www-form-urlencoded');
  if (!isForm && !/^application\/(?:[\w.+-]+\+)?json\b/.test(type)) return null;
  const text = isForm ? formOf(redacted.data as Record<string, unknown>) : JSON.stringify(redacted.data);
  return Buffer.byteLength(text) > maxBytes ? null : printable(text, maxBytes);
}

function formOf(data: Record<string, unknown>): string {
  return Object.entries(data)
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return `${encodeURIComponent(name)}=${text === REDACTED ? REDACTED : encodeURIComponent(text)}`;
    })
    .join('&');
}

/** A header's value may be a list of parameters: `Accept: x; token=…`. */
const namesSecret = (value: string, secrets: SecretNames): boolean =>
  redactQuery(value.replaceAll(/[;,]\s*/g, '&'), secrets).includes(REDACTED);

function safeHost(host: unknown): string {
  const given = typeof host === 'string' ? host : '';
  return /^[\w.-]+(?::\d{1,5})?$|^\[[0-9a-f:.]+\](?::\d{1,5})?$/i.test(given) ? given : 'localhost';
}
