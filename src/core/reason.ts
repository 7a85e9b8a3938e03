import { printable } from './printable.js';

/** What is worth saying of a failure, on one line: the message, which may hold what a client sent; never a stack. */
export function reasonOf(error: unknown, maxLength = 300): string {
  try {
    if (!(error instanceof Error)) return printable(String(error), maxLength);
    // ioredis' AggregateErrors of several addresses have no message of their own.
    return printable(error.message || (error as NodeJS.ErrnoException).code || error.name, maxLength);
  } catch {
    // An object whose `message` or `toString` throws still must not harm us; its type is all that can be said.
    return `an ${typeof error} that cannot be printed`;
  }
}
