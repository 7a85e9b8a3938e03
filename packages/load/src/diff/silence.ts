import { printable } from '../quantity.js';
import { UsageError } from '../usage.js';
import { ROLES, type Role, type Triple } from './route-answers.js';

/** More of its requests without an answer, and the running release is no measure. */
const MAX_UNANSWERED = 0.05;

/** Requests that were left without an answer. */
export class Silence {
  private asked = 0;
  /** By the running release, in either of its processes. */
  private unanswered = 0;
  private readonly answers: Record<Role, number> = { primary: 0, secondary: 0, candidate: 0 };
  /** Why the last one was left without. */
  private readonly failures = new Map<Role, string>();

  /** `named`: `'--primary http://127.0.0.1:3000'` */
  constructor(private readonly named: (role: Role) => string) {}

  add(answers: Triple): void {
    this.asked += 1;
    for (const role of ROLES) {
      const { failure } = answers[role];
      if (failure === null) this.answers[role] += 1;
      else this.failures.set(role, printable(failure));
    }
    if (answers.primary.failure !== null || answers.secondary.failure !== null) this.unanswered += 1;
  }

  /** @throws UsageError where one has answered nothing */
  refuseNobody(): void {
    for (const role of ROLES)
      if (this.asked > 0 && this.answers[role] === 0)
        throw new UsageError(`${this.named(role)} does not answer: ${this.failures.get(role)}`);
  }

  /** @throws UsageError where the running release has left too much without an answer: it proves no difference, nor its absence */
  refuseNoMeasure(): void {
    if (this.unanswered <= MAX_UNANSWERED * this.asked) return;
    const [role] = (['primary', 'secondary'] as const).toSorted((a, b) => this.answers[a] - this.answers[b]);
    throw new UsageError(
      `The running release has not answered ${this.unanswered} of ${this.asked} requests (${this.named(role!)}: ${this.failures.get(role!)}): there is nothing to compare.`,
    );
  }
}
