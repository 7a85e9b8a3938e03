import { reasonOf } from './reason.js';
import type { OncePerCause } from './reporter.js';

/** Calls each. One that throws is reported as `what`: neither the others nor the caller are affected. */
export function tellAll<T>(
  listeners: readonly ((told: T) => void)[],
  told: T,
  report: OncePerCause,
  what: string,
): void {
  for (let i = 0; i < listeners.length; i++) {
    try {
      listeners[i]!(told);
    } catch (error) {
      const cause = `${what} failed: ${reasonOf(error)}`;
      report.report(cause, `${cause}. Requests are not affected.`);
    }
  }
}
