import { createHash } from 'node:crypto';
import type { ContentCoding } from './content-coding.js';

/** Tags that Express makes by itself: a weak one of the body's length and its SHA-1. */
const EXPRESS_TAG = /^W\/"([0-9a-f]+)-[A-Za-z0-9+/]{27}"$/;
/** Our own suffix of a representation: `;br-4`. The level is there because a strong tag stands for bytes. */
const REPRESENTATION_SUFFIX = /;(?:zstd|br|gzip|deflate)-\d+"$/;

/** A strong tag of the identity representation. */
export function contentTag(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
}

/** Whether the tag is Express's own of these bytes, so that it stands for the content and not for something the application means. */
export function isExpressTag(tag: string, body: string | Uint8Array): boolean {
  return typeof body !== 'string' && expressTagLength(tag) === body.byteLength;
}

/** The bytes of the body that a tag of Express's is of; null for other tags. */
export function expressTagLength(tag: string): number | null {
  const match = EXPRESS_TAG.exec(tag);
  return match === null ? null : Number.parseInt(match[1]!, 16);
}

/** The tag of an encoded representation: as strong as the content's, and different for every coding and level. */
export function representationTag(tag: string, coding: ContentCoding, level: number): string {
  return `${tag.slice(0, -1)};${coding}-${level}"`;
}

/** RFC 9110 section 8.8.1: the bytes are no longer those the application's strong tag stood for. */
export const weakened = (tag: string): string => (tag === '' || tag.startsWith('W/') ? tag : `W/${tag}`);

/**
 * The member of `If-None-Match` that matches the tag a 200 would carry, by weak comparison (RFC 9110 section 13.1.2), or null.
 * Two representations of one content and one coding match whatever their level: the client's copy decodes to the same.
 */
export function matchingTag(ifNoneMatch: string, tag: string): string | null {
  if (ifNoneMatch.trim() === '*') return tag;
  const wanted = comparable(tag);
  const candidates = ifNoneMatch.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return candidates.find((candidate) => comparable(candidate) === wanted) ?? null;
}

function comparable(tag: string): string {
  const opaque = tag.startsWith('W/') ? tag.slice(2) : tag;
  return REPRESENTATION_SUFFIX.test(opaque) ? opaque.replace(/-\d+"$/, '"') : opaque;
}
