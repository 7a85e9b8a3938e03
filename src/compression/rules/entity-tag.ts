import type { IncomingMessage } from 'node:http';
import type { HeldHead } from '../held-head.js';
import type { ContentCoding } from './accept-encoding.js';
import { hasMember } from './policy.js';

/** Weak form of a tag: a strong one would no longer name the same bytes (RFC 9110 section 8.8.1). */
const weaken = (tag: string): string => (tag === '' || tag.startsWith('W/') ? tag : `W/${tag}`);

/**
 * The tag of an encoded body: another for each coding, and weak, since its bytes depend on the level. `;` marks a tag that was weak
 * before, `;;` a strong one, so that `restoreTags()` returns the application's own.
 */
export const tagRepresentation = (tag: string, coding: ContentCoding): string =>
  tag.endsWith('"') ? weaken(`${tag.slice(0, -1)}${tag.startsWith('W/') ? ';' : ';;'}${coding}"`) : tag;

const REPRESENTATION = /W\/"([^"]*?)(;{1,2})(zstd|br|gzip|deflate)"/g;

/** Replaces tags of encoded bodies by the application's; of one `coding` only, or of all with null. */
export const restoreTags = (header: string, coding: string | null): string =>
  header.replace(REPRESENTATION, (all, opaque: string, mark: string, of: string) => {
    if (coding !== null && of !== coding) return all;
    return mark === ';;' ? `"${opaque}"` : `W/"${opaque}"`;
  });

const IF_MATCH = 'if-match';
const IF_NONE_MATCH = 'if-none-match';

/**
 * Puts the application's tags into a request that names tags of encoded bodies: all in `If-Match`; in `If-None-Match` those of the
 * coding that the answer would have. Returns the former `If-None-Match` when that has changed.
 */
export function translateConditions(request: IncomingMessage, coding: () => ContentCoding | null): string | undefined {
  if (!mayHaveConditions(request)) return undefined;
  const { headers } = request;
  const { [IF_MATCH]: ifMatch, [IF_NONE_MATCH]: ifNoneMatch } = headers;
  if (ifMatch !== undefined) headers[IF_MATCH] = restoreTags(ifMatch, null);
  if (ifNoneMatch?.includes(';') !== true) return undefined;
  const wanted = coding();
  if (wanted === null) return undefined;
  headers[IF_NONE_MATCH] = restoreTags(ifNoneMatch, wanted);
  return ifNoneMatch;
}

/** Reads raw headers, since Node parses them at the first use of `headers`. Requests of function platforms have no raw ones. */
function mayHaveConditions({ rawHeaders }: IncomingMessage): boolean {
  if (rawHeaders.length === 0) return true;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const { length } = rawHeaders[i]!;
    if (length === IF_MATCH.length || length === IF_NONE_MATCH.length) return true;
  }
  return false;
}

/** Whether `If-None-Match` names the tag that a 200 would carry, by weak comparison (RFC 9110 section 13.1.2). */
export function namesTag(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const given = ifNoneMatch.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return given.some((each) => weaken(each) === weaken(tag));
}

/** Gives an application's own 304 the tag that the client named: a cache finds its 200 by it (RFC 9111 section 4.3.4). */
export function tagAsNamed(head: HeldHead): void {
  const tag = head.header('etag');
  const named = head.requestHeader(IF_NONE_MATCH)?.match(REPRESENTATION) ?? [];
  const representation = named.find((each) => restoreTags(each, null) === tag);
  if (representation !== undefined) head.set('etag', representation);
}

/**
 * Sets the tag of a body in a coding, made from the unencoded body's tag `base`. True if the client has that body: the response is then
 * a 304 (RFC 9110 section 13).
 */
export function isKnown(head: HeldHead, base: string | null, coding: ContentCoding | null): boolean {
  if (base === null) return false;
  const tag = coding === null ? base : tagRepresentation(base, coding);
  if (tag !== head.header('etag')) head.set('etag', tag);
  const ifNoneMatch = head.requestHeader(IF_NONE_MATCH);
  if (ifNoneMatch === undefined || !mayBeFresh(head)) return false;
  if (namesTag(ifNoneMatch, tag)) return answerNotModified(head);
  if (coding === null || !namesTag(ifNoneMatch, base)) return false;
  // The client has it unencoded, and the same content is good either way.
  head.set('etag', base);
  return answerNotModified(head);
}

function answerNotModified(head: HeldHead): true {
  head.setStatus(304);
  for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding']) head.remove(name);
  return true;
}

/** A GET or HEAD whose client does not require a new answer (`Cache-Control: no-cache`, a forced reload). */
function mayBeFresh(head: HeldHead): boolean {
  if (head.status !== 200 || (head.method !== 'GET' && head.method !== 'HEAD')) return false;
  return !hasMember(head.requestHeader('cache-control'), 'no-cache');
}
