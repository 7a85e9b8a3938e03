import { printable } from '../quantity.js';
import { UsageError } from '../usage.js';
import { ROLES, type Role, type Triple } from './route-answers.js';

/** More of its requests without an answer, and the running release is no measure. */
const MAX_UNANSWERED = 0.05;
/** So many at the end without an answer, and nobody is there any more. */
const GONE = 3;

/** Nothing listens there: no request has brought that about. */
const NO_CONNECTION = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** `'--primary http://127.0.0.1:3000'` */
type Named = (role: Role) => string;

/** Whether all three are there before anything is compared. */
export class RollCall {
  private readonly answered = new Set<Role>();
  private readonly failures = new Map<Role, string>();

  constructor(private readonly named: Named) {}

  /** @throws UsageError where one cannot be connected to, and never could */
  add(answers: Triple): void {
    for (const role of ROLES) {
      const { failure } = answers[role];
      if (failure === null) this.answered.add(role);
      else if (NO_CONNECTION.has(failure)) this.refuse(role, failure);
      else if (failure !== 'timeout') this.failures.set(role, failure);
    }
  }

  /** @throws UsageError where one has answered nothing: an answer that never comes in time is compared */
  end(): void {
    for (const [role, failure] of this.failures) this.refuse(role, failure);
  }

  private refuse(role: Role, failure: string): void {
    if (!this.answered.has(role)) throw new UsageError(`${this.named(role)} does not answer: ${printable(failure)}`);
  }
}

/** Requests that the running release has not answered: they prove neither a difference nor its absence. */
export class Silence {
  private readonly failures = { primary: [] as (string | null)[], secondary: [] as (string | null)[] };

  constructor(private readonly named: Named) {}

  add({ primary, secondary }: Triple): void {
    this.failures.primary.push(primary.failure);
    this.failures.secondary.push(secondary.failure);
  }

  /** @throws UsageError where one of the two has gone, or has left too much without an answer */
  refuse(): void {
    const { primary, secondary } = this.failures;
    this.refuseGone('primary', primary);
    this.refuseGone('secondary', secondary);
    const count = primary.filter((failure, i) => failure !== null || secondary[i] !== null).length;
    if (count <= MAX_UNANSWERED * primary.length) return;
    const [role, failure] = primary.some(isFailure)
      ? (['primary', primary.findLast(isFailure)!] as const)
      : (['secondary', secondary.findLast(isFailure)!] as const);
    throw new UsageError(
      `The running release has not answered ${count} of ${primary.length} requests (${this.named(role)}: ${printable(failure)}): there is nothing to compare.`,
    );
  }

  /** @throws UsageError where one of the two has gone since: what is looked at again is no measure of a release */
  refuseGoneSince(answers: Triple): void {
    for (const role of ['primary', 'secondary'] as const) {
      const { failure } = answers[role];
      if (failure !== null && NO_CONNECTION.has(failure)) throw this.stopped(role, this.failures[role].length, failure);
    }
  }

  private refuseGone(role: 'primary' | 'secondary', failures: readonly (string | null)[]): void {
    const answered = failures.findLastIndex((failure) => failure === null || failure === 'timeout') + 1;
    const last = failures.at(-1) ?? null;
    if (last === null || answered === failures.length) return;
    if (!NO_CONNECTION.has(last) && failures.length - answered < Math.min(GONE, failures.length)) return;
    throw this.stopped(role, answered, last);
  }

  private stopped(role: Role, answered: number, failure: string): UsageError {
    return new UsageError(`${this.named(role)} stopped answering after ${answered} requests: ${printable(failure)}`);
  }
}

const isFailure = (failure: string | null): failure is string => failure !== null;
