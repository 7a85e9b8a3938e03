import type { TLSSocket } from 'node:tls';
import { printable } from '../../core/printable.js';
import { REDACTED, type SecretNames } from '../../core/secret-names.js';
import type { RequestState } from '../../request/request-state.js';
import { methodLabel } from '../../request/routes.js';
import { parsedBody, safeBody, safeHeaders, safeUrl, type Headers } from '../../request/safe-request.js';

export interface ReplayRules {
  readonly allowHeaders: readonly string[];
  readonly maxBodyBytes: number;
}

/** A curl line that repeats a request, without its secrets; null for work without HTTP. The address is the server's: clients choose the `Host`. */
export function createReplay(
  state: RequestState,
  rules: ReplayRules,
  secrets: SecretNames,
  serverAddress: string | null,
): string | null {
  const { request } = state;
  if (request === null) return null;
  const { headers } = request;
  const method = methodLabel(request.method);
  // An HTTP/2 request has lost its socket by now.
  const socket = request.socket as Partial<TLSSocket> | undefined;
  const secure = socket?.encrypted === true || headers[':scheme'] === 'https';
  const address = readAddress(socket) ?? serverAddress ?? 'localhost';
  const url = `${secure ? 'https' : 'http'}://${address}${safeUrl(state, secrets)}`;
  const words = ['curl'];
  if (!secure && headers[':scheme'] !== undefined) words.push('--http2-prior-knowledge');
  if (method === 'HEAD') words.push('--head');
  else if (method !== 'GET') words.push('-X', quote(method));
  // Brackets and braces in a URL are ranges to curl.
  words.push('--globoff', quote(url.replaceAll('\\', '%5C')));
  for (const [name, value] of safeHeaders(headers, rules.allowHeaders, secrets))
    words.push('-H', quote(`${name}: ${value}`));
  const body = formatBody(headers, parsedBody(state), rules.maxBodyBytes, secrets);
  if (body !== null) words.push('--data-raw', quote(body));
  return words.join(' ');
}

/** `text` as one word of bash, dash, zsh and fish: in fish a backslash escapes a quote inside single quotes. */
export const quote = (text: string): string =>
  `'${text.replaceAll(/['\\]/g, (special) => (special === "'" ? `'\\''` : `'"\\\\"'`))}'`;

/** `'127.0.0.1:3000'` of a socket, or of a server's address; null where it has none, as a Unix socket. */
export function formatAddress(address: string | undefined, port: number | undefined): string | null {
  if (address === undefined || port === undefined) return null;
  const host = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (host === '::' || host === '0.0.0.0') return `localhost:${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

const readAddress = (socket: Partial<TLSSocket> | undefined): string | null =>
  formatAddress(socket?.localAddress, socket?.localPort);

function formatBody(headers: Headers, body: unknown, maxBytes: number, secrets: SecretNames): string | null {
  const safe = safeBody(headers, body, maxBytes, secrets);
  if (safe === null) return null;
  const text = safe.isForm ? formatForm(safe.data as Record<string, unknown>) : JSON.stringify(safe.data);
  return Buffer.byteLength(text) > maxBytes ? null : printable(text, maxBytes);
}

function formatForm(data: Record<string, unknown>): string {
  const formatField = (name: string, value: unknown): string => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${encodeURIComponent(name)}=${text === REDACTED ? REDACTED : encodeURIComponent(text)}`;
  };
  const fields = Object.entries(data).flatMap(([name, given]) =>
    [given].flat().map((value) => formatField(name, value)),
  );
  return fields.join('&');
}
