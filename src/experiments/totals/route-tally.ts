import type { Outcome } from './cells.js';
import { PrePeriod } from './pre-period.js';
import { VariantTally } from './variant-tally.js';

/** What experiments keep for one route. */
export class RouteTally {
  succeeded = 0;
  succeededMs = 0;
  readonly gates = new Map<string, { on: VariantTally; off: VariantTally }>();
  private before: PrePeriod | null = null;

  constructor(
    readonly method: string,
    readonly pattern: string,
  ) {}

  /** Every request of the route, gated or not. */
  addTraffic(outcome: Outcome): void {
    if (!outcome.succeeded) return;
    this.succeeded += 1;
    this.succeededMs += outcome.durationMs;
  }

  /** A request before the gates opened. */
  addBefore(unitHash: number, outcome: Outcome): void {
    if (outcome.succeeded) (this.before ??= new PrePeriod()).add(unitHash, outcome.durationMs);
  }

  add(gate: string, on: boolean, unitHash: number, outcome: Outcome): void {
    this.tallyOf(gate, on).add(unitHash, outcome, this.before);
  }

  private tallyOf(gate: string, on: boolean): VariantTally {
    let tallies = this.gates.get(gate);
    if (tallies === undefined) {
      tallies = { on: new VariantTally(), off: new VariantTally() };
      this.gates.set(gate, tallies);
    }
    return on ? tallies.on : tallies.off;
  }
}
