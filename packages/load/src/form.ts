/** A parsed form as its text again: as Express's parser reads it, which nests, and Fastify's, which does not. */
export function encodeForm(fields: object): string {
  return new URLSearchParams(Object.entries(fields).flatMap(([name, value]) => encodePairs(name, value))).toString();
}

function encodePairs(name: string, value: unknown): [string, string][] {
  if (Array.isArray(value)) return encodeItems(name, value as unknown[]);
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, inner]) => encodePairs(`${name}[${key}]`, inner));
  return [[name, typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)]];
}

function encodeItems(name: string, items: readonly unknown[]): [string, string][] {
  if (items.some((item) => typeof item === 'object' && item !== null))
    return items.flatMap((item, i) => encodePairs(`${name}[${i}]`, item));
  // A field that came several times is a list in the recording. Only brackets make a list of one.
  return items.flatMap((item) => encodePairs(items.length === 1 ? `${name}[]` : name, item));
}
