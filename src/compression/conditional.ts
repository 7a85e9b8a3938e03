import type { Body, CachedBody } from './cache/cached-body.js';
import type { ResponseView } from './response-view.js';
import type { ContentCoding } from './rules/content-coding.js';
import { isExpressTag, namesTag, representationTag, weakened } from './rules/entity-tag.js';
import { hasMember, isWritable } from './rules/field-value.js';

/**
 * What puts the tag of its representation on a response: the application's, or one of its content where `entry` knows it.
 * It returns true where the client has that already; the response is then a 304 without a body (RFC 9110 section 13).
 */
export function conditionOf(
  view: ResponseView,
  body: Body,
  entry: CachedBody | null,
): (coding: ContentCoding | null) => boolean {
  const given = view.header('etag');
  const own = typeof given === 'string' ? given : null;
  const base = own ?? (entry !== null && view.tags ? entry.tag : null);
  if (base === null) return () => false;
  // A tag that stands for the content alone may be another one for each representation.
  const ofContent = own === null || isExpressTag(own, body);
  const ifNoneMatch = view.requestHeader('if-none-match');
  const asked = ifNoneMatch !== undefined && mayBeFresh(view);
  return (coding) => {
    const encoded = ofContent ? representationTag : weakened;
    const tag = coding === null ? base : encoded(base, coding);
    view.set('etag', tag);
    if (!asked || !namesTag(ifNoneMatch, tag)) return false;
    view.setStatus(304);
    for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding']) view.remove(name);
    return true;
  };
}

/**
 * A conditional GET that the client has not asked to be answered anew (`Cache-Control: no-cache`, a forced reload). A 304 whose
 * head Node refuses could not be answered otherwise any more: Node would not send another answer's body.
 */
function mayBeFresh(view: ResponseView): boolean {
  if (view.status !== 200 || view.method !== 'GET') return false;
  return !hasMember(view.requestHeader('cache-control'), 'no-cache') && isWritable(view.headers());
}
