import { exceeds } from '../statistics/absolute.js';
import type { Arm } from '../../core/statistics/ratio-mean.js';
import type { Route } from '../../request/routes.js';
import type { Cell, GateTally, Tallies } from '../totals/gate-tally.js';
import type { StopLimits } from './stop-option.js';

/** Probability of a stop without cause, over all checks, limits and routes of a gate. */
const ALPHA = 0.05;

type Limit = keyof StopLimits;

/** Sums of a limit's metric, and how much of `off` is allowed: `factor` × off + `margin`. */
interface Test {
  readonly sum: Cell;
  readonly count: Cell;
  readonly factor: number;
  readonly margin: number;
}

function chooseTest(limit: Limit, allowed: number): Test {
  if (limit === 'errors') return { sum: 'evenErrors', count: 'evenCompleted', factor: 1, margin: allowed };
  if (limit === 'blockedMs') return { sum: 'evenBlockedMs', count: 'evenCompleted', factor: 1 + allowed, margin: 0 };
  // The allowance is in what counts as slow: at the limit `on` is slow as often as `off`.
  return { sum: 'evenSlow', count: 'evenSucceeded', factor: 1, margin: 0 };
}

/** Gates that were stopped because `on` is worse than `off` by more than a limit, by the anytime-valid bound. */
export class GateStops {
  private readonly stopped = new Map<string, string>();
  private readonly limits: readonly (readonly [Limit, number])[];

  constructor(limits: StopLimits) {
    this.limits = Object.entries(limits).filter((entry): entry is [Limit, number] => entry[1] !== null);
  }

  /** The lines to log of the gates that are stopped now. */
  check(tallies: Tallies): string[] {
    return [...tallies].flatMap(([gate, routes]) => {
      const reason = this.stopped.has(gate) ? null : this.reasonToStop(routes);
      if (reason === null) return [];
      this.stopped.set(gate, reason);
      return [
        `Gate \`${gate}\` is stopped: ${reason}. It is "off" until \`experiments.resume('${gate}')\` or a restart.`,
      ];
    });
  }

  reasonFor(gate: string): string | null {
    return this.stopped.get(gate) ?? null;
  }

  resume(gate: string): boolean {
    return this.stopped.delete(gate);
  }

  private reasonToStop(routes: ReadonlyMap<Route, GateTally>): string | null {
    let place = 0;
    for (const [{ method, pattern }, tally] of routes) {
      const alpha = shareOfAlpha(++place) / this.limits.length;
      for (const [limit, allowed] of this.limits) {
        const { sum, count, factor, margin } = chooseTest(limit, allowed);
        const [control, treatment] = [tally.off.rows(count, sum), tally.on.rows(count, sum)];
        if (!exceeds(control, treatment, { factor, margin, alpha })) continue;
        const route = `${method} ${pattern}`;
        return `${worse(limit, tally, control, treatment)} on ${route}, beyond the limit of +${percent(allowed)}`;
      }
    }
    return null;
  }
}

/** Routes may come for as long as the gate runs: the shares 6/π²k² of all of them add up to 1. */
const shareOfAlpha = (place: number): number => (ALPHA * 6) / (Math.PI * place) ** 2;

/** `p95 52 ms, off 31 ms` */
function worse(limit: Limit, { p95Ms }: GateTally, control: Arm, treatment: Arm): string {
  if (limit === 'p95')
    return `p95 is about ${p95Ms.on.valueMs.toFixed(0)} ms, ${p95Ms.off.valueMs.toFixed(0)} ms when off,`;
  const [off, on] = [control, treatment].map((arm) => total(arm, 'sum') / total(arm, 'count')) as [number, number];
  if (limit === 'errors') return `${percent(on)} of requests fail, ${percent(off)} when off,`;
  return `a request blocks the event loop for ${on.toFixed(1)} ms, ${off.toFixed(1)} ms when off,`;
}

const total = (arm: Arm, key: 'sum' | 'count'): number => arm.reduce((all, row) => all + row[key], 0);
const percent = (share: number): string => `${Number((share * 100).toFixed(2))} %`;
