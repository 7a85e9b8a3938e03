import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** What `writeHead` takes. */
export type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** `writeHead`'s headers: an object, a flat list of names and values, or a list of pairs. */
export function setAll(response: ServerResponse, headers: GivenHeaders | undefined): void {
  if (headers === undefined || headers === null) return;
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) response.setHeader(name, value);
    return;
  }
  const pairs = Array.isArray(headers[0]) ? (headers as unknown as [string, OutgoingHttpHeader][]) : pairUp(headers);
  for (const [name] of pairs) response.removeHeader(name);
  for (const [name, value] of pairs) response.appendHeader(name, value as string | string[]);
}

function pairUp(flat: readonly OutgoingHttpHeader[]): [string, OutgoingHttpHeader][] {
  const pairs: [string, OutgoingHttpHeader][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([String(flat[i]), flat[i + 1]!]);
  return pairs;
}
