import { createHash } from 'node:crypto';
import type { ContentCoding } from './content-coding.js';

/** Tags that Express makes by itself: a weak one of the body's length and its SHA-1. */
const EXPRESS_TAG = /^W\/"([0-9a-f]+)-[A-Za-z0-9+/]{27}"$/;

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
