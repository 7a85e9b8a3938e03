import { UsageError } from './usage.js';

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly route: string;
}

/** Which requests may be sent: GET and HEAD, and what `--allow 'POST /search'` names. */
export class Allowed {
  private readonly rules: readonly (readonly [method: string, pattern: string])[];

  constructor(given: readonly string[]) {
    this.rules = given.map((text) => {
      const [, method, pattern] = /^([A-Z]+)\s+(\/\S*)$/.exec(text.trim()) ?? [];
      if (method === undefined)
        throw new UsageError(`--allow must be a method and a path such as 'POST /search', got "${text}".`);
      return [method, pattern!] as const;
    });
  }

  has({ method, path, route }: Asked): boolean {
    if (isSafe(method)) return true;
    const asked = path.split('?', 1)[0]!;
    return this.rules.some(([of, pattern]) => of === method && (pattern === route || matches(pattern, asked)));
  }
}

/** Asking twice changes nothing. */
export const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** `/users/:id` stands for one segment. */
function matches(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith(':') ? given[i] !== '' : part === given[i]))
  );
}
