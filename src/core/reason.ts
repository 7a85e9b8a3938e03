import { printable } from './printable.js';
import { withoutSecrets } from './secret-names.js';

/** Formats a failure on one line without a full stop: its message, which may quote a client; never a stack or a secret. */
export function describeReason(error: unknown, maxLength = 300): string {
  try {
    if (!(error instanceof Error)) return shown(String(error), maxLength);
    // ioredis' AggregateErrors of several addresses have no message of their own.
    const message = error.message || (error as NodeJS.ErrnoException).code || error.name;
    return shown(message, maxLength);
  } catch {
    // Its `message` or `toString` throws.
    return `an ${typeof error} that cannot be printed`;
  }
}

/** The text behind the shown part may be long, and a key may begin before its end. */
const shown = (text: string, maxLength: number): string =>
  printable(withoutSecrets(text.slice(0, 4 * maxLength)), maxLength).replace(/(?<!\.)\.$/, '');
