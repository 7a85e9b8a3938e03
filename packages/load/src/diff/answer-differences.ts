import { brotliDecompressSync, unzipSync } from 'node:zlib';
import type { Answer } from '../client.js';
import { jsonDifferences, longIntegerDifferences, type Difference } from './json-differences.js';

/** Differences between two answers to one request. Their headers and bodies are compared where the status is the same. */
export function answerDifferences(from: Answer, to: Answer): Difference[] {
  if (from.status !== to.status) return [{ kind: 'status', path: '' }];
  return [...headerDifferences(from, to), ...bodyDifferences(from, to)];
}

function* headerDifferences(from: Answer, to: Answer): Generator<Difference> {
  if (readMediaType(from) !== readMediaType(to)) yield { kind: 'header', path: 'content-type' };
  if (Math.floor(from.status / 100) === 3 && from.location !== to.location) yield { kind: 'header', path: 'location' };
}

function bodyDifferences(from: Answer, to: Answer): Difference[] {
  if (from.body === null || to.body === null || from.body.equals(to.body)) return [];
  const [was, is] = [decoded(from.body, from), decoded(to.body, to)];
  if (was.equals(is)) return [];
  const [a, b] = [parseJson(was, from), parseJson(is, to)];
  if (a === null || b === null) {
    const whole = { kind: a === b ? ('value' as const) : ('type' as const), path: '' };
    const resized = Math.abs(was.length - is.length) > RESIZED * Math.max(was.length, is.length);
    return resized ? [whole, { kind: 'length', path: '' }] : [whole];
  }
  const found = jsonDifferences(a.data, b.data);
  const places = new Set(found.map(({ path }) => path));
  return [...found, ...longIntegerDifferences(a.text, b.text).filter(({ path }) => !places.has(path))];
}

/** A page that holds a nonce differs each time, and its size hardly does. */
const RESIZED = 0.1;

/** Some servers compress whatever they are asked for. */
const DECODERS = new Map([
  ['gzip', unzipSync],
  ['x-gzip', unzipSync],
  ['deflate', unzipSync],
  ['br', brotliDecompressSync],
]);

/** As it is where it cannot be decoded. */
function decoded(body: Buffer, { encoding }: Answer): Buffer {
  try {
    return DECODERS.get(encoding.trim().toLowerCase())?.(body) ?? body;
  } catch {
    return body;
  }
}

/** Without its parameters. */
const readMediaType = ({ type }: Answer): string => type.split(/[;,]/, 1)[0]!.trim().toLowerCase();

function parseJson(body: Buffer, answer: Answer): { text: string; data: unknown } | null {
  if (!/^application\/(?:[\w.+-]+\+)?json$/.test(readMediaType(answer))) return null;
  try {
    // A decoder leaves out the mark of the byte order, as clients do.
    const text = new TextDecoder().decode(body);
    return { text, data: JSON.parse(text) };
  } catch {
    return null;
  }
}
