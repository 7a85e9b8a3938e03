import type { Answer } from '../client.js';
import { jsonDifferences, type Difference } from './json-differences.js';

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
  const [was, is] = [parseJson(from.body, from), parseJson(to.body, to)];
  if (was === undefined || is === undefined) return [{ kind: was === is ? 'value' : 'type', path: '' }];
  return jsonDifferences(was, is);
}

/** Without its parameters. */
const readMediaType = ({ type }: Answer): string => type.split(/[;,]/, 1)[0]!.trim().toLowerCase();

/** Undefined for what is no JSON. */
function parseJson(body: Buffer, answer: Answer): unknown {
  if (!/^application\/(?:[\w.+-]+\+)?json$/.test(readMediaType(answer))) return undefined;
  try {
    // A decoder leaves out the mark of the byte order, as clients do.
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
