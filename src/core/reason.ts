import { printable } from './printable.js';
import { withoutSecrets } from './secret-names.js';

/**
 * What is worth saying of a failure, on one line and without a full stop: the message, which may hold what a client sent; never
 * a stack, a key or credentials.
 */
export function reasonOf(error: unknown, maxLength = 300): string {
  try {
    if (!(error instanceof Error)) return shown(String(error), maxLength);
    // ioredis' AggregateErrors of several addresses have no message of their own.
    const message = error.message || (error as NodeJS.ErrnoException).code || error.name;
    return shown(message, maxLength);
  } catch {
    // An object whose `message` or `toString` throws still must not harm us; its type is all that can be said.
    return `an ${typeof error} that cannot be printed`;
  }
}

/** What stands behind what is shown may be long, and a key may begin before its end. */
const shown = (text: string, maxLength: number): string =>
  printable(withoutSecrets(text.slice(0, 4 * maxLength)), maxLength).replace(/(?<!\.)\.$/, '');
