import { createHash } from 'node:crypto';

/** A strong tag of the identity representation. */
export function contentTag(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
}
