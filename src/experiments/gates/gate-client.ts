import type { Unit } from '../../core/record.js';

/** A gate's answer for one unit. */
export interface GateAnswer {
  on: boolean;
  /** The rule that decided, where the client knows it. */
  rule?: string;
  /**
   * Why this is no decision but a fallback: the gate is unknown, the client is not ready. Such requests run as `off`, are
   * left out of the comparison, and the reason is logged once.
   */
  problem?: string;
}

/** Decides which unit gets which variant: Statsig, OpenFeature, a static table, or any object of this shape. */
export interface GateClient {
  /** Synchronous, because it runs on the request path; one that throws counts as `off`. */
  check(gate: string, unit: Unit): GateAnswer;
  /**
   * For clients that evaluate asynchronously: `@Experiment()` and `@Variant()` await it, 1 s at most, and then call `check()`.
   * Null where `check()` can answer at once.
   */
  prepare?(gate: string, unit: Unit): Promise<void> | null;
  /** The share of units that should be on, 0 to 1, when the client knows it: for the sample-ratio check. */
  share?(gate: string): number | null;
  /** Called once on shutdown, after the last request. */
  close?(): Promise<void>;
}
