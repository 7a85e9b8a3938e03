import { randomUUID } from 'node:crypto';
import { getOrAdd } from '../core/get-or-add.js';
import { describeReason } from '../core/reason.js';
import type { Unit } from '../core/record.js';
import type { RecordHold } from '../ports/record-hold.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DecidesGates, ExperimentNotes, RequestState } from '../request/request-state.js';
import { RequestUnits } from '../request/request-unit.js';
import { isMeasured, type Route } from '../request/routes.js';
import { within } from '../core/within.js';
import type { ResolvedExperiments } from './experiments.options.js';
import { GateDecisions } from './gate-decisions.js';
import { type SliceTally, Switchback } from './switchback/switchback.js';
import type { ExperimentTotals } from './totals/experiment-totals.js';
import { GateTally, MAX_PAIRS, type Outcome } from './totals/gate-tally.js';
import { GateStops } from './stop/gate-stops.js';
import { hashText } from './unit-hash.js';

/** Differs from the seeds of gates, so that buckets are independent of variants. */
const BUCKET_SEED = 0x6275636b;
const STOP_CHECK_MS = 1_000;

/** Decides variants while requests run, and adds up their outcomes when they have ended. One per application. */
export class ExperimentEngine implements DecidesGates {
  private readonly decisions: GateDecisions;
  private readonly readUnit: (state: RequestState) => Unit | null;
  private readonly switchback: Switchback | null;
  private readonly source = randomUUID();
  private readonly tallies = new Map<string, Map<Route, GateTally>>();
  private readonly stops: GateStops | null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly options: ResolvedExperiments,
    private readonly report: OncePerCause,
    /** The module's `unit`, where `experiments.unit` is not set. */
    units: RequestUnits,
    /** Delays the count of a request until its blocks are attributed; null when the event loop is not observed. */
    private readonly holds: RecordHold | null,
    private readonly warn: (message: string) => void = () => {},
  ) {
    const { gates, unit, switchback, stop } = options;
    this.stops = stop === null ? null : new GateStops(stop);
    this.decisions = new GateDecisions(gates, report);
    // Read apart: the state keeps what the module's `unit` returns, for records, users and shared answers.
    const own = unit === null ? null : new RequestUnits('experiments.unit', unit, report);
    this.readUnit = own === null ? (state) => units.of(state) : (state) => own.read(state) ?? null;
    this.switchback = switchback === null ? null : new Switchback(switchback, this.source);
  }

  start(): void {
    this.switchback?.start();
    if (this.stops !== null) this.timer = setInterval(() => this.checkStops(), STOP_CHECK_MS).unref();
  }

  /** Stops every gate that exceeds a limit on a route. Called each second. */
  checkStops(): void {
    for (const reason of this.stops?.check(this.tallies) ?? []) this.warn(reason);
  }

  /** Returns the decision to the gate client, and begins the comparison anew; false: the gate is not stopped. */
  resume(gate: string): boolean {
    if (this.stops?.resume(gate) !== true) return false;
    this.tallies.delete(gate);
    return true;
  }

  /** The reason why a gate is answered `off`; null: it is not stopped. */
  stoppedBecause(gate: string): string | null {
    return this.stops?.reasonFor(gate) ?? null;
  }

  /** Stops the switchback and closes the gate client within the deadline. Reports what goes wrong; never throws. */
  async close(deadlineMs: number): Promise<void> {
    this.switchback?.stop();
    if (this.timer !== null) clearInterval(this.timer);
    const { gates } = this.options;
    try {
      if (await within(deadlineMs, async () => gates.close?.())) return;
      this.report.report('gates close', `The gate client did not close within ${deadlineMs} ms.`);
    } catch (error) {
      this.report.report('gates close', `The gate client failed to close: ${describeReason(error)}`);
    }
  }

  /** The variant of a request, decided at the first check and kept. Never throws. */
  isOn(state: RequestState, gate: string): boolean {
    const { variants } = state;
    // A gate may be named like a property that every object has: `constructor`.
    if (variants !== null && Object.hasOwn(variants, gate)) return variants[gate] === 'on';
    const on = this.decide(state, gate);
    // Work after the response must not change a record that has been written.
    if (!state.closed) (state.variants ??= {})[gate] = on ? 'on' : 'off';
    return on;
  }

  prepare(state: RequestState, gate: string): Promise<void> | null {
    const isDecided = state.variants !== null && Object.hasOwn(state.variants, gate);
    if (isDecided || !this.clientDecides(gate)) return null;
    return this.decisions.prepare(gate, this.findUnit(state));
  }

  ended(state: RequestState): void {
    if (this.holds?.hold(state, this.count) !== true) this.count(state);
  }

  /** Adds a request to the totals, once its blocked time is final. */
  private readonly count = (state: RequestState): void => {
    const { route } = state;
    if (route === null || !isMeasured(route)) return;
    const { aborted, blockedMs, status, startedMs, endedMs } = state;
    const succeeded = !aborted && status < 400;
    const outcome = { aborted, succeeded, failed: status >= 500, durationMs: endedMs - startedMs, blockedMs };
    if (state.variants !== null && state.unit !== null) this.addOutcome(state, outcome, route);
  };

  /** Gates with an answer: those that were checked, and the switchback's. */
  gates(): string[] {
    return [...this.tallies.keys(), ...(this.switchback === null ? [] : [this.switchback.gate])].sort();
  }

  /** The totals of all gates, or of `only`. Takes milliseconds a route. */
  totals(only: string | null = null): ExperimentTotals {
    const gates = [...this.tallies.keys()].filter((gate) => only === null || gate === only);
    return {
      version: 3,
      sources: [this.source],
      gates: gates.sort().map((gate) => {
        const routes = [...this.tallies.get(gate)!];
        return {
          gate,
          treatmentShare: this.decisions.readShare(gate),
          splitMoved: routes.map(([, { split }]) => split.moved).find(Boolean) ?? null,
          routes: routes.map(([{ method, pattern: route }, { on, off }]) => {
            return { method, route, on: on.totals(), off: off.totals() };
          }),
        };
      }),
      slices: this.switchback?.totals() ?? [],
    };
  }

  /** Whether the gate client decides: neither the switchback nor a stop does. */
  private clientDecides(gate: string): boolean {
    return this.switchback?.gate !== gate && this.stoppedBecause(gate) === null;
  }

  private findUnit(state: RequestState): Unit {
    return (state.unit ??= this.readUnit(state) ?? { userId: state.id });
  }

  private decide(state: RequestState, gate: string): boolean {
    const unit = this.findUnit(state);
    if (this.switchback?.gate === gate) {
      const { on, current } = this.switchback;
      const notes = findNotes(state);
      notes.slice = current;
      notes.uncounted.push(gate);
      return on;
    }
    if (this.stoppedBecause(gate) !== null) {
      findNotes(state).uncounted.push(gate);
      return false;
    }
    const { on, counted } = this.decisions.decide(gate, unit);
    if (!counted) findNotes(state).uncounted.push(gate);
    return on;
  }

  private addOutcome(state: RequestState, outcome: Outcome, route: Route): void {
    const notes = state.experimentNotes;
    const unitHash = hashText(state.unit!.userId, BUCKET_SEED);
    (notes?.slice as SliceTally | null | undefined)?.add(route, outcome);
    for (const [gate, variant] of Object.entries(state.variants!)) {
      if (notes?.uncounted.includes(gate) === true) continue;
      const tally = this.findTally(gate, route);
      const share = this.decisions.readShare(gate);
      tally?.add(variant === 'on', unitHash, outcome, share, this.options.stop?.p95 ?? 0);
    }
  }

  /** Null where no further pair of gate and route is compared. */
  private findTally(gate: string, route: Route): GateTally | null {
    const known = this.tallies.get(gate)?.get(route);
    if (known !== undefined) return known;
    const pairs = [...this.tallies.values()].reduce((sum, { size }) => sum + size, 0);
    if (pairs >= MAX_PAIRS) {
      const cause = `experiments compare at most ${MAX_PAIRS} pairs of gate and route`;
      this.report.report(cause, `${cause}. Gate \`${gate}\` is not compared on ${route.method} ${route.pattern}.`);
      return null;
    }
    const tally = new GateTally();
    getOrAdd(this.tallies, gate, () => new Map<Route, GateTally>()).set(route, tally);
    return tally;
  }
}

const findNotes = (state: RequestState): ExperimentNotes => (state.experimentNotes ??= { uncounted: [], slice: null });
