import { describeReason } from './reason.js';
import type { OncePerCause } from './reporter.js';

/** Calls each. One that throws is reported as `what`: neither the others nor the caller are affected. */
export function callAll<T>(
  listeners: readonly ((given: T) => void)[],
  given: T,
  report: OncePerCause,
  what: string,
): void {
  for (let i = 0; i < listeners.length; i++) {
    try {
      listeners[i]!(given);
    } catch (error) {
      const cause = `${what} failed: ${describeReason(error)}`;
      report.report(cause, `${cause}. Requests are not affected.`);
    }
  }
}
