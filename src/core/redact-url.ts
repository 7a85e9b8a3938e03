import { printable } from './printable.js';
import { isSafeText, redactQuery } from './redact.js';
import { REDACTED, type SecretNames } from './secret-names.js';

const MAX_URL_LENGTH = 2_048;

/** The part of a path that the router knows. */
export interface MatchedPath {
  /** The route's, whose `:token` names a segment; null or `''` where none has matched. */
  readonly pattern: string | null;
  /** Whether a parameter of the route is hidden though its name is no secret's. */
  readonly hides?: (name: string) => boolean;
}

/** Path and query without the parameters and segments whose name or value has a secret's form, or that cannot be decoded. */
export function redactUrl(url: string, matched: MatchedPath, secrets: SecretNames): string {
  const [path, query] = splitUrl(cutUrl(url));
  const redactedPath = redactPath(path, matched, secrets);
  const redacted = query === null ? redactedPath : `${redactedPath}?${redactQuery(query, secrets)}`;
  return printable(redacted, MAX_URL_LENGTH);
}

/** The part of a URL that is read, so that a long one costs no more than a short one. What is not there as a whole is left out. */
function cutUrl(url: string): string {
  if (url.length <= MAX_URL_LENGTH) return url;
  const end = Math.max(...['/', '?', '&'].map((mark) => url.lastIndexOf(mark, MAX_URL_LENGTH - 2)));
  return `${url.slice(0, end + 1)}…`;
}

/** Path (an empty one is `/`) and query; the scheme, credentials and host of an absolute target are dropped, and any fragment. */
function splitUrl(url: string): [path: string, query: string | null] {
  const target = url.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, '');
  const end = target.indexOf('#');
  const whole = end < 0 ? target : target.slice(0, end);
  const mark = whole.indexOf('?');
  return mark < 0 ? [whole || '/', null] : [whole.slice(0, mark) || '/', whole.slice(mark + 1)];
}

function redactPath(path: string, matched: MatchedPath, secrets: SecretNames): string {
  const segments = path.split('/');
  const isOfRoute = hiddenByRoute(segments, matched, secrets);
  const showsWordsAlone = UNMATCHED.test(matched.pattern ?? '');
  const isHidden = (segment: string, index: number): boolean =>
    isOfRoute(segment, index) ||
    (showsWordsAlone && !WORD.test(segment)) ||
    // Matrix parameters: `/report;token=…`
    !isSafeText('', segment, secrets);
  return segments.map((segment, index) => (isHidden(segment, index) ? REDACTED : segment)).join('/');
}

/** No pattern, or one for every path: the client may have mistyped that of a route with a secret. */
const UNMATCHED = /^[/{]*(?:\*.*)?$/;
/** Neither an id nor a secret; `*` is a whole target of OPTIONS. */
const WORD = /^(?:[a-z._-]{0,24}|v\d{1,3}|\*)$/;

type IsHidden = (segment: string, index: number) => boolean;
const NONE: IsHidden = () => false;

/** `:token`, `*path`, `*` */
const PARAMETERS = /[:*](\w*)/g;

/** The secret parameters of the matched route; all but its literals where it was matched by another path than the client has sent. */
function hiddenByRoute(segments: readonly string[], { pattern, hides }: MatchedPath, secrets: SecretNames): IsHidden {
  const parts = (pattern ?? '').split('/').map((text) => {
    const parameters = [...text.matchAll(PARAMETERS)];
    const isSecret = parameters.some(([parameter, name]) => secrets.isSecret(parameter) || hides?.(name!) === true);
    return { literal: text.toLowerCase(), isLiteral: parameters.length === 0, isSecret };
  });
  if (!parts.some(({ isSecret }) => isSecret)) return NONE;
  const isAsSent =
    parts.length === segments.length &&
    parts.every(({ literal, isLiteral }, index) => !isLiteral || literal === segments[index]!.toLowerCase());
  if (isAsSent) return (_segment, index) => parts[index]!.isSecret;
  const literals = new Set(parts.map(({ literal }) => literal.replaceAll(/[{}]/g, '')));
  return (segment) => !literals.has(segment.toLowerCase());
}
