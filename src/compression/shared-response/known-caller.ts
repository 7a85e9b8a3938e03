import type { IncomingHttpHeaders } from 'node:http';

/** The sign of a known caller: a header, or the option `unit`. */
export type CallerSign = 'Authorization' | 'Cookie' | 'unit';

/** The first sign that a request carries; null for an unknown caller. `isForSomebody` reads `unit`, after the headers. */
export function signOf(headers: IncomingHttpHeaders, isForSomebody: () => boolean): CallerSign | null {
  if (headers.authorization !== undefined) return 'Authorization';
  if (headers.cookie !== undefined) return 'Cookie';
  return isForSomebody() ? 'unit' : null;
}
