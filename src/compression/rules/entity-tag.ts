import type { IncomingMessage } from 'node:http';
import type { HeldHead } from '../held-head.js';
import type { ContentCoding } from './accept-encoding.js';
import { hasMember } from './policy.js';

/** Weak form of a tag: a strong one would no longer name the same bytes (RFC 9110 section 8.8.1). */
const weaken = (tag: string): string => (tag === '' || tag.startsWith('W/') ? tag : `W/${tag}`);

/**
 * The tag of an encoded representation: another for each coding, and weak, since its bytes depend on the level. One semicolon for a
 * tag that was weak before, two for a strong one, so that it can be given back.
 */
export const tagRepresentation = (tag: string, coding: ContentCoding): string =>
  tag.endsWith('"') ? weaken(`${tag.slice(0, -1)}${tag.startsWith('W/') ? ';' : ';;'}${coding}"`) : tag;

const REPRESENTATION = /W\/"([^"]*?)(;{1,2})(zstd|br|gzip|deflate)"/g;

/** The application's tags in place of those of encoded representations; `coding`: of this one only, null for all. */
export const restoreTags = (header: string, coding: string | null): string =>
  header.replace(REPRESENTATION, (all, opaque: string, mark: string, of: string) => {
    if (coding !== null && of !== coding) return all;
    return mark === ';;' ? `"${opaque}"` : `W/"${opaque}"`;
  });

const IF_MATCH = 'if-match';
const IF_NONE_MATCH = 'if-none-match';

/**
 * Puts the application's own tags into a request that names ours: in `If-Match` all, in `If-None-Match` those of the coding that the
 * answer would have. Runs before any reader of its headers. Returns the former `If-None-Match`, where that has changed.
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

/** Reads raw headers: the parsed ones are made at their first use. Requests of function platforms have parsed headers alone. */
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

/** A 304 of the application's own names the representation that the client has: a cache finds its 200 by the tag (RFC 9111 section 4.3.4). */
export function tagAsNamed(head: HeldHead): void {
  const tag = head.header('etag');
  const named = head.requestHeader(IF_NONE_MATCH)?.match(REPRESENTATION) ?? [];
  const representation = named.find((each) => restoreTags(each, null) === tag);
  if (representation !== undefined) head.set('etag', representation);
}

/**
 * Puts the tag of its representation on a response, made from `base`: the application's, or one of its content. True where the client
 * has that already; the response is then a 304 without a body (RFC 9110 section 13).
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
