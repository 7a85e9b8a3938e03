import { getOrAdd } from './get-or-add.js';
import type { SecretNames } from './secret-names.js';

/** The parameters of all routes, by the literal segment that precedes them; `''` is the beginning of a path. */
export class DeclaredParameters {
  private readonly byLiteral = new Map<string, Set<string>>();

  /** `pattern` may lack its prefix and version. */
  add(pattern: string): void {
    let literal = '';
    for (const segment of pattern.split('/')) {
      const names = segment.match(/[:*]\w+/g);
      const text = segment.replaceAll(/[{}]/g, '').toLowerCase();
      if (names === null) literal = text === '' ? literal : text;
      else for (const name of names) getOrAdd(this.byLiteral, literal, () => new Set()).add(name);
    }
  }

  precedesSecret(literal: string, secrets: SecretNames): boolean {
    const names = this.byLiteral.get(literal.toLowerCase());
    return names !== undefined && [...names].some((name) => secrets.isSecret(name));
  }
}
