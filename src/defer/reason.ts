import { printable } from '../core/printable.js';

/** ioredis' AggregateErrors of several addresses have no message of their own. */
const codeOf = (error: NodeJS.ErrnoException): string | undefined => error.code;

/** What is worth saying of a failure, on one line: the message, which may hold what a client sent; never a stack. */
export function reasonOf(error: unknown): string {
  try {
    return printable(error instanceof Error ? error.message || codeOf(error) || error.name : String(error), 300);
  } catch {
    // An object whose `message` or `toString` throws still must not harm us; its type is all that can be said.
    return `an ${typeof error} that cannot be printed`;
  }
}
