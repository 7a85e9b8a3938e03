import type { ResponseView } from '../response-view.js';
import type { ContentCoding } from './accept-encoding.js';
import { hasMember, isWritable } from './policy.js';

/** Tags that Express makes by itself: a weak one of the body's length and its SHA-1. */
const EXPRESS_TAG = /^W\/"([0-9a-f]+)-[A-Za-z0-9+/]{27}"$/;

/** Whether the tag is Express's own of these bytes, so that it stands for the content and not for something the application means. */
export function isExpressTag(tag: string, body: string | Uint8Array): boolean {
  return typeof body !== 'string' && expressTagLength(tag) === body.byteLength;
}

/** The bytes of the body that a tag of Express's is of; null for other tags. */
export function expressTagLength(tag: string): number | null {
  const match = EXPRESS_TAG.exec(tag);
  return match === null ? null : Number.parseInt(match[1]!, 16);
}

/** RFC 9110 section 8.8.1: the bytes are no longer those that a strong tag stood for. */
export const weakened = (tag: string): string => (tag === '' || tag.startsWith('W/') ? tag : `W/${tag}`);

/** The tag of an encoded representation: another for each coding, and weak, since its bytes depend on the level. */
export const representationTag = (tag: string, coding: ContentCoding): string =>
  weakened(`${tag.slice(0, -1)};${coding}"`);

/** Whether `If-None-Match` names the tag that a 200 would carry, by weak comparison (RFC 9110 section 13.1.2). */
export function namesTag(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const given = ifNoneMatch.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return given.some((each) => weakened(each) === weakened(tag));
}

/** A strong tag that the client names as a weak one is of an encoded 200: a cache looks for its 200 by the tag (RFC 9111 section 4.3.4). */
export function tagAsNamed(view: ResponseView): void {
  const tag = view.header('etag');
  if (typeof tag !== 'string') return;
  const weak = weakened(tag);
  if (view.requestHeader('if-none-match')?.includes(weak) === true) view.set('etag', weak);
}

/**
 * What puts the tag of its representation on a response: the application's, or one of its content where `entry` knows it.
 * It returns true where the client has that already; the response is then a 304 without a body (RFC 9110 section 13).
 */
export function conditionOf(
  view: ResponseView,
  body: string | Uint8Array,
  entry: { readonly tag: string } | null,
): (coding: ContentCoding | null) => boolean {
  const given = view.header('etag');
  const own = typeof given === 'string' ? given : null;
  const base = own ?? (entry !== null && view.tags ? entry.tag : null);
  if (base === null) return () => isNotModified(view);
  // A tag that stands for the content alone may be another one for each representation.
  const ofContent = own === null || isExpressTag(own, body);
  const ifNoneMatch = view.requestHeader('if-none-match');
  const asked = ifNoneMatch !== undefined && mayBeFresh(view);
  return (coding) => {
    const encoded = ofContent ? representationTag : weakened;
    const tag = coding === null ? base : encoded(base, coding);
    view.set('etag', tag);
    if (!asked) return isNotModified(view);
    return namesTag(ifNoneMatch, tag) && answerNotModified(view);
  };
}

/** `If-Modified-Since`, which counts without `If-None-Match` (RFC 9110 section 13.1.3). Of others the framework has asked itself. */
function isNotModified(view: ResponseView): boolean {
  if (view.shared === null || view.requestHeader('if-none-match') !== undefined || !mayBeFresh(view)) return false;
  const since = Date.parse(view.requestHeader('if-modified-since') ?? '');
  const modified = Date.parse(String(view.header('last-modified') ?? ''));
  return modified <= since && answerNotModified(view);
}

function answerNotModified(view: ResponseView): true {
  view.setStatus(304);
  for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding']) view.remove(name);
  return true;
}

/**
 * A conditional GET or HEAD that the client has not asked to be answered anew (`Cache-Control: no-cache`, a forced reload). A 304 whose
 * head Node refuses could not be answered otherwise any more: Node would not send another answer's body.
 */
function mayBeFresh(view: ResponseView): boolean {
  if (view.status !== 200 || (view.method !== 'GET' && view.method !== 'HEAD')) return false;
  return !hasMember(view.requestHeader('cache-control'), 'no-cache') && isWritable(view.headers());
}
