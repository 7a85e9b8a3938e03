import type { DeclaredParameters } from './declared-parameters.js';
import { printable } from './printable.js';
import { isSafeText, redactQuery } from './redact.js';
import { REDACTED, type SecretNames } from './secret-names.js';

const MAX_URL_LENGTH = 2_048;

/** The part of a path that the router knows. */
export interface MatchedPath {
  /** The route's, whose `:token` names a segment; null or `''` where none has matched. */
  readonly pattern: string | null;
  /** Values of the path's parameters, as the router has decoded them. */
  readonly parameters?: Readonly<Record<string, unknown>> | null;
  /** Parameters of all routes, for a path that none has matched. */
  readonly declared?: DeclaredParameters | null;
  /** Whether a parameter of the route is hidden though its name is no secret's. Its value is undefined where the router has none. */
  readonly hides?: (name: string, value: unknown) => boolean;
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
  const hidden = new Set([...hiddenByRoute(segments, matched, secrets), ...hiddenByOthers(segments, matched, secrets)]);
  // Matrix parameters: `/report;token=…`
  const isSafe = (segment: string, index: number): boolean => !hidden.has(index) && isSafeText('', segment, secrets);
  return segments.map((segment, index) => (isSafe(segment, index) ? segment : REDACTED)).join('/');
}

/** Segments of the matched route's secret parameters, by the router's values: it may have routed another path than the client has sent. */
function hiddenByRoute(segments: readonly string[], matched: MatchedPath, secrets: SecretNames): readonly number[] {
  const pattern = matched.pattern ?? '';
  const names = hiddenParameters(pattern, matched, secrets);
  if (names.length === 0) return [];
  const byValue = findValues(segments, readValues(names, pattern, matched.parameters ?? {}));
  return byValue ?? findByPattern(segments, pattern, names);
}

function hiddenParameters(pattern: string, { parameters, hides }: MatchedPath, secrets: SecretNames): string[] {
  const isHidden = (name: string): boolean => {
    const key = name.slice(1);
    return secrets.isSecret(name) || (name.startsWith(':') && hides?.(key, parameters?.[key]) === true);
  };
  return [...pattern.matchAll(PARAMETER)].map(([name]) => name).filter(isHidden);
}

/** `:token`, `*path` */
const PARAMETER = /[:*]\w+/g;

/** Texts; of a wildcard with several segments, one for each. */
function readValues(
  names: readonly string[],
  pattern: string,
  parameters: Readonly<Record<string, unknown>>,
): string[] {
  return names.flatMap((name) => {
    const key = name.slice(1);
    // Fastify's wildcards have no names.
    const isUnnamed = name.startsWith('*') && !Object.hasOwn(parameters, key) && pattern.split('*').length === 2;
    const value = parameters[isUnnamed ? '*' : key];
    return [value].flat().flatMap((part) => (typeof part === 'string' && part !== '' ? [part] : []));
  });
}

/** Null where a value is nowhere in the path, or none is known. */
function findValues(segments: readonly string[], values: readonly string[]): number[] | null {
  if (values.length === 0) return null;
  const texts = segments.map((segment) => decodeSegment(segment).toLowerCase());
  const found: number[] = [];
  for (const value of values) {
    const whole = indexesWith(texts, value);
    const parts = whole.length > 0 ? [whole] : value.split('/').map((part) => indexesWith(texts, part));
    if (parts.some((indexes) => indexes.length === 0)) return null;
    found.push(...parts.flat());
  }
  return found;
}

/** Shorter values are parts of too many words. */
const MIN_PART = 3;

function indexesWith(texts: readonly string[], value: string): number[] {
  const wanted = value.toLowerCase();
  const has = (text: string): boolean => text === wanted || (wanted.length >= MIN_PART && text.includes(wanted));
  return texts.flatMap((text, index) => (has(text) ? [index] : []));
}

/** By the pattern alone: by index where it has as many segments and no optional ones, else whatever is no literal of it. */
function findByPattern(segments: readonly string[], pattern: string, hidden: readonly string[]): number[] {
  const names = pattern.split('/');
  const isAligned = names.length === segments.length && !/[*{?]/.test(pattern);
  const literals = new Set(names.map((name) => name.replaceAll(/[{}]/g, '').toLowerCase()));
  const isHidden = (segment: string, index: number): boolean =>
    isAligned
      ? [...names[index]!.matchAll(PARAMETER)].some(([name]) => hidden.includes(name))
      : !literals.has(segment.toLowerCase());
  return segments.flatMap((segment, index) => (isHidden(segment, index) ? [index] : []));
}

/** In a path that no route or a wildcard has matched: segments behind a literal that precedes a secret parameter of some route. */
function hiddenByOthers(segments: readonly string[], matched: MatchedPath, secrets: SecretNames): readonly number[] {
  const { pattern, declared = null } = matched;
  if (declared === null || (pattern !== null && pattern !== '' && !pattern.includes('*'))) return [];
  const first = segments.findIndex((segment) => segment !== '');
  if (first === -1) return [];
  if (declared.precedesSecret('', secrets)) return indexesFrom(segments, first);
  for (const [index, segment] of segments.entries()) {
    // `%2F` is no border to routers.
    const parts = decodeSegment(segment).split('/');
    const at = parts.findIndex((part) => part !== '' && declared.precedesSecret(part, secrets));
    if (at === -1) continue;
    const isInside = parts.slice(at + 1).some((part) => part !== '');
    return indexesFrom(segments, isInside ? index : index + 1);
  }
  return [];
}

const indexesFrom = (segments: readonly string[], first: number): number[] =>
  segments.flatMap((segment, index) => (index >= first && segment !== '' ? [index] : []));

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
