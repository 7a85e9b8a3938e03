import type { Answer } from '../client.js';
import { jsonDifferences, type Difference } from './json-differences.js';
import { longIntegerDifferences } from './long-integers.js';

/** What differs between two answers to one request. Bodies are compared where the status is the same. */
export function answerDifferences(from: Answer, to: Answer): Difference[] {
  if (from.status !== to.status) return [{ kind: 'status', path: '' }];
  if (from.body === null || to.body === null || from.body.equals(to.body)) return [];
  const [a, b] = [jsonOf(from), jsonOf(to)];
  if (a === null || b === null) return [{ kind: a === b ? 'value' : 'type', path: '' }];
  const found = jsonDifferences(a.data, b.data);
  const places = new Set(found.map(({ path }) => path));
  return [...found, ...longIntegerDifferences(a.text, b.text).filter(({ path }) => !places.has(path))];
}

function jsonOf({ type, body }: Answer): { text: string; data: unknown } | null {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/.test(type)) return null;
  try {
    const text = body!.toString();
    return { text, data: JSON.parse(text) };
  } catch {
    return null;
  }
}
