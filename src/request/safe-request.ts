import { printable } from '../core/printable.js';
import { redactData, redactQuery } from '../core/redact.js';
import { redactUrl } from '../core/redact-url.js';
import { REDACTED, type SecretNames } from '../core/secret-names.js';
import type { RequestState } from './request-state.js';

/** Headers that change what a handler does and identify nobody. */
const ALLOWED_HEADERS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'if-modified-since',
  'if-none-match',
  'range',
] as const;

/** A longer header is no part of what a handler decides by, and it would fill the log. */
const MAX_HEADER_LENGTH = 512;

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Port to the names of `eventLoop.replay.denyNames`: they are secret beside the built-in ones. Empty with `replay: false`. */
export abstract class DeniedNames {
  abstract readonly names: readonly string[];
}

/** Express moves `url` while it walks mounted routers; `originalUrl` is the one that was sent. */
interface AnyRequest {
  originalUrl?: unknown;
  params?: unknown;
  body?: unknown;
}

/** Path and query as the client sent them, without their secrets. `hides`: whether a parameter of the path is left out, too. */
export function safeUrl(
  state: RequestState,
  secrets: SecretNames,
  hides?: (name: string, value: unknown) => boolean,
): string {
  const { originalUrl } = (state.request ?? {}) as AnyRequest;
  const sent = typeof originalUrl === 'string' ? originalUrl : (state.request?.url ?? '');
  const { pattern } = state;
  if (hides === undefined) return redactUrl(sent, { pattern }, secrets);
  const { params } = (state.frameworkRequest ?? {}) as AnyRequest;
  const values = (typeof params === 'object' ? (params ?? {}) : {}) as Record<string, unknown>;
  return redactUrl(sent, { pattern, hides: (name) => hides(name, values[name]) }, secrets);
}

/** The parsed body; undefined when there was none, or it is still unread. */
export const parsedBody = (state: RequestState): unknown => (state.frameworkRequest as AnyRequest | null)?.body;

/** Selects the headers that may be shown: those not allowed are left out, and secret values are replaced. */
export function safeHeaders(headers: Headers, allowHeaders: readonly string[], secrets: SecretNames) {
  const allowed = new Set<string>([...ALLOWED_HEADERS, ...allowHeaders.map((name) => name.toLowerCase())]);
  const shown: [name: string, value: string][] = [];
  for (const [name, given] of Object.entries(headers)) {
    if (!allowed.has(name) || given === undefined) continue;
    const value = Array.isArray(given) ? given.join(', ') : String(given);
    const short = value.length <= MAX_HEADER_LENGTH;
    // An entity tag looks like a secret, and is none.
    const isSecret = (): boolean =>
      secrets.isSecret(name) ||
      (name !== 'if-none-match' && (secrets.isSecretValue(value) || namesSecret(value, secrets)));
    // A long value is not searched: that may cost milliseconds.
    const safe = short && !isSecret();
    shown.push([name, safe ? printable(value, MAX_HEADER_LENGTH) : REDACTED]);
  }
  return shown;
}

/** A body's data without its secrets; null where it is too large, compressed, or neither a form nor JSON. */
export function safeBody(
  headers: Headers,
  body: unknown,
  maxBytes: number,
  secrets: SecretNames,
): { data: unknown; isForm: boolean } | null {
  if (maxBytes === 0 || typeof body !== 'object' || body === null) return null;
  const type = String(headers['content-type'] ?? '').toLowerCase();
  const isForm = type.startsWith('application/x-www-form-urlencoded');
  if (!isForm && !/^application\/(?:[\w.+-]+\+)?json\b/.test(type)) return null;
  // One that is sent in chunks has no length; a compressed one is longer than its length.
  const length = headers['content-length'];
  if (Number(length ?? 0) > maxBytes || headers['content-encoding'] !== undefined) return null;
  const redacted = redactData(body, secrets, maxBytes);
  if (redacted === null) return null;
  const text = JSON.stringify(redacted.data);
  // Some parsers leave `{}` for a request without a body.
  const isNone = text === '{}' && length === undefined && headers['transfer-encoding'] === undefined;
  if (isNone || Buffer.byteLength(text) > maxBytes) return null;
  return { data: redacted.data, isForm };
}

/** A header's value may be a list of parameters: `Accept: x; token=…`. */
const namesSecret = (value: string, secrets: SecretNames): boolean =>
  redactQuery(value.replaceAll(/[;,]\s*/g, '&'), secrets).includes(REDACTED);
