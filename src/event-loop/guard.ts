import type { OncePerCause } from '../core/reporter.js';

/** Reads what an application may have put on a request, a getter that throws among it. */
export class Guard {
  constructor(private readonly report: OncePerCause) {}

  /** What `read` returns; `otherwise` where it throws, which is reported once for each `what`. */
  read<T>(what: string, read: () => T, otherwise: T): T {
    try {
      return read();
    } catch (error) {
      this.failed(`reading ${what} of a request`, error);
      return otherwise;
    }
  }

  /** Something failed while `doing`; the record that needs it goes on without. */
  readonly failed = (doing: string, error: unknown): void => {
    const cause = `${doing} for an event-loop block failed`;
    // The error is the application's own, and may hold what it worked on: only its kind is told.
    this.report.report(cause, `${cause} (${kindOf(error)}). The record is written without it.`);
  };
}

function kindOf(error: unknown): string {
  try {
    const { name } = error as Error;
    return typeof name === 'string' ? name : typeof error;
  } catch {
    return typeof error;
  }
}
