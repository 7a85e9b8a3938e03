import { describeReason } from '../core/reason.js';
import type { Unit } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import { isThenable } from '../core/thenable.js';
import { within } from '../core/within.js';
import type { GateClient } from './gates/gate-client.js';

/** A request waits no longer than this for an asynchronous gate client. */
const PREPARE_MS = 1_000;

/** Calls the gate client. Never throws; each kind of failure is logged once and counted. */
export class GateDecisions {
  constructor(
    private readonly gates: GateClient,
    private readonly report: OncePerCause,
  ) {}

  /** `counted` is false for a fallback: it was not drawn, so it must not be compared. */
  decide(gate: string, unit: Unit): { on: boolean; counted: boolean } {
    const answer = this.evaluate(gate, unit);
    if (typeof answer === 'boolean') return { on: answer, counted: true };
    this.complain(gate, answer);
    return { on: false, counted: false };
  }

  /** Resolves when `decide()` may be called; null: at once. Never rejects. */
  prepare(gate: string, unit: Unit): Promise<void> | null {
    try {
      const ready: unknown = this.gates.prepare?.(gate, unit);
      return isThenable(ready) ? this.settled(gate, ready) : null;
    } catch (error) {
      this.complain(gate, describeReason(error));
      return null;
    }
  }

  private async settled(gate: string, ready: PromiseLike<unknown>): Promise<void> {
    try {
      if (await within(PREPARE_MS, async () => ready)) return;
      this.complain(gate, `the client did not answer within ${PREPARE_MS} ms`);
    } catch (error) {
      this.complain(gate, describeReason(error));
    }
  }

  readShare(gate: string): number | null {
    try {
      return this.gates.share?.(gate) ?? null;
    } catch (error) {
      this.complain(gate, describeReason(error));
      return null;
    }
  }

  /** Returns the reason as a text where the client made no decision. */
  private evaluate(gate: string, unit: Unit): boolean | string {
    try {
      // Written by users: nothing in the answer is certain.
      const answer = this.gates.check(gate, unit) as { on?: unknown; problem?: unknown } | null | undefined;
      if (answer?.problem != null) return describeReason(answer.problem);
      return typeof answer?.on === 'boolean' ? answer.on : 'the client answered without `on`';
    } catch (error) {
      return describeReason(error);
    }
  }

  private complain(gate: string, problem: string): void {
    const cause = `gate \`${gate}\``.slice(0, 100) + `: ${problem.slice(0, 200)}`;
    this.report.report(cause, `${cause}. Such requests run as "off" and are not compared.`);
  }
}
