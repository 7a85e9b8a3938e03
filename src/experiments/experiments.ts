import { describe } from '../core/option.js';
import type { OncePerCause } from '../core/reporter.js';
import { storedRequest, type RequestOwner } from '../request/request-state.js';
import type { ExperimentEngine } from './experiment-engine.js';
import type { ExperimentReport, ReportOptions } from './report/experiment-report.js';
import { reportTotals } from './report/report-totals.js';
import { unanswered } from './report/wording.js';
import type { ExperimentTotals } from './totals/experiment-totals.js';
import { mergeTotals } from './totals/merge-totals.js';

/** Gates for the current request, and the answer whether what they switch is faster. Injectable whether or not it is on. */
export class Experiments {
  /** Made by the module; `engine` is null when the feature is off. @internal */
  constructor(
    private readonly engine: ExperimentEngine | null,
    private readonly owner: RequestOwner,
    private readonly problems: OncePerCause,
  ) {}

  /**
   * Whether the gate is on for the current request. The first check of a request decides, and its record carries the variant.
   * Synchronous, never throws. False when the feature is off, outside a request, and for a gate that the client does not know.
   */
  check(gate: string): boolean {
    if (this.engine === null) return false;
    if (typeof gate !== 'string') {
      const cause = `Experiments.check() without the name of a gate, got ${describe(gate)}`;
      this.problems.report(cause, `${cause}: it is false.`);
      return false;
    }
    const state = storedRequest();
    if (state !== undefined && state.owner === this.owner) return this.engine.isOn(state, gate);
    const cause = 'Experiments.check() outside a request';
    this.problems.report(cause, `${cause}: it is false.`);
    return false;
  }

  /** The observations of this process: plain JSON of a few ten KiB a gate and route, whatever the number of users. */
  totals(): ExperimentTotals {
    return this.engine?.totals() ?? mergeTotals();
  }

  /**
   * Whether the gate makes a difference, by what this process has observed. For several pods, merge their totals and use
   * `reportTotals()`. Takes milliseconds: not for a request's path.
   */
  report(gate: string, options: ReportOptions = {}): ExperimentReport {
    if (this.engine !== null) {
      const report = reportTotals(this.engine.totals(gate), gate, options);
      const reason = this.engine.stoppedBecause(gate);
      return reason === null ? report : { ...report, caveats: [`The gate is stopped: ${reason}.`, ...report.caveats] };
    }
    const { route = null, metric = 'latency' } = options;
    return unanswered({ gate, route, metric }, 'the feature `experiments` is off');
  }

  /**
   * Takes back a stop by `experiments.stop`: the gate client decides again, and the gate's comparison begins anew. Never throws.
   * @returns false when the gate was not stopped
   */
  resume(gate: string): boolean {
    return this.engine?.resume(gate) ?? false;
  }
}
