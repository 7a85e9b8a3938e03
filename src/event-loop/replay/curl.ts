import { printable } from '../../core/printable.js';
import { redactUrl, REDACTED, type SecretNames } from '../../core/redact.js';
import type { RequestState } from '../../core/request-state.js';
import { methodLabel } from '../../core/route.js';
import { parsedBody, safeBody, safeHeaders, sentUrl, type Headers } from '../../core/safe-request.js';

export interface ReplayRules {
  readonly allowHeaders: readonly string[];
  /** 0: no body. */
  readonly maxBodyBytes: number;
}

/** A curl line that sends a request again, without its secrets; null for one that did not come over HTTP. */
export function replayOf(state: RequestState, rules: ReplayRules, secrets: SecretNames): string | null {
  const { request, route } = state;
  if (request === null) return null;
  const { headers } = request;
  const method = methodLabel(request.method);
  // An HTTP/2 request has lost its socket by now.
  const socket = request.socket as { encrypted?: boolean } | undefined;
  const secure = socket?.encrypted === true || headers[':scheme'] === 'https';
  const host = safeHost(headers.host ?? headers[':authority']);
  const url = `${secure ? 'https' : 'http'}://${host}${redactUrl(sentUrl(state), route?.pattern ?? null, secrets)}`;
  const words = ['curl'];
  if (!secure && headers[':scheme'] !== undefined) words.push('--http2-prior-knowledge');
  if (method === 'HEAD') words.push('--head');
  else if (method !== 'GET') words.push('-X', quote(method));
  // Brackets and braces in a URL are ranges to curl.
  words.push('--globoff', quote(url));
  for (const [name, value] of safeHeaders(headers, rules.allowHeaders, secrets))
    words.push('-H', quote(`${name}: ${value}`));
  const body = bodyOf(headers, parsedBody(state), rules.maxBodyBytes, secrets);
  if (body !== null) words.push('--data-raw', quote(body));
  return words.join(' ');
}

/** `text` as one word of a POSIX shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function bodyOf(headers: Headers, body: unknown, maxBytes: number, secrets: SecretNames): string | null {
  const safe = safeBody(headers, body, maxBytes, secrets);
  if (safe === null) return null;
  const text = safe.isForm ? formOf(safe.data as Record<string, unknown>) : JSON.stringify(safe.data);
  return Buffer.byteLength(text) > maxBytes ? null : printable(text, maxBytes);
}

function formOf(data: Record<string, unknown>): string {
  const fieldOf = (name: string, value: unknown): string => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${encodeURIComponent(name)}=${text === REDACTED ? REDACTED : encodeURIComponent(text)}`;
  };
  const fields = Object.entries(data).flatMap(([name, given]) => [given].flat().map((value) => fieldOf(name, value)));
  return fields.join('&');
}

function safeHost(host: unknown): string {
  const given = typeof host === 'string' ? host : '';
  return /^[\w.-]+(?::\d{1,5})?$|^\[[0-9a-f:.]+\](?::\d{1,5})?$/i.test(given) ? given : 'localhost';
}
