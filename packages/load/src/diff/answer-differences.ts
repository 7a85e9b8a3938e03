import type { Answer } from '../client.js';
import { jsonDifferences, type Difference } from './json-differences.js';

/** What differs between two answers to one request. Bodies are compared where the status is the same. */
export function answerDifferences(from: Answer, to: Answer): Difference[] {
  if (from.status !== to.status) return [{ kind: 'status', path: '' }];
  if (from.body === null || to.body === null || from.body.equals(to.body)) return [];
  const [a, b] = [jsonOf(from), jsonOf(to)];
  if (a === null || b === null) return [{ kind: a === b ? 'value' : 'type', path: '' }];
  return jsonDifferences(a.data, b.data);
}

function jsonOf({ type, body }: Answer): { data: unknown } | null {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/.test(type)) return null;
  try {
    return { data: JSON.parse(body!.toString()) };
  } catch {
    return null;
  }
}
