import { jsonDifferences, type Difference } from './json-differences.js';

/** Above 2^53 JSON.parse makes one number of several integers: from 16 digits on. */
const LONG = /\d{16}/;
const STRINGS_AND_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/** Values that differ between two JSON texts in integers that a number of JavaScript cannot tell apart. */
export function longIntegerDifferences(from: string, to: string): Difference[] {
  if (!LONG.test(from) || !LONG.test(to)) return [];
  return jsonDifferences(JSON.parse(quoted(from)), JSON.parse(quoted(to))).filter(({ kind }) => kind === 'value');
}

const quoted = (json: string): string =>
  json.replaceAll(STRINGS_AND_NUMBERS, (token) => (LONG_INTEGER.test(token) ? `"${token}"` : token));
