import type { Answer } from './client.js';
import { increment, sum } from './counts.js';
import type { TrafficRequest } from './traffic.js';

const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, 'p99.9': 0.999, max: 1 } as const;

/** Milliseconds; NaN of no answer, Infinity where a failed request decides. */
export type LatencyFigures = Readonly<Record<'mean' | keyof typeof QUANTILES, number>>;

export interface Outcome extends Answer {
  readonly index: number;
  readonly request: TrafficRequest;
  /** From the intended start to the end of the answer. */
  readonly latencyMs: number;
  readonly failed: boolean;
}

/** Figures that a gate judges and a report prints. */
export interface Figures {
  readonly requests: number;
  readonly durationMs: LatencyFigures;
  /** 0 to 1 */
  readonly errorShare: number;
}

/** Outcomes of the requests of a run, or of one of its routes. */
export class Outcomes {
  /** Why answers count as failed: `'timeout'`, `'503'`. */
  readonly failures = new Map<string, number>();
  /** Answers with another status than was expected, by `'200 → 401'`. */
  readonly otherStatus = new Map<string, number>();
  /** Answers of any status. */
  answers = 0;
  /** Answers that have not failed, and still have not done what was done when it was recorded. */
  refused = 0;
  /** Infinity of one that has failed: an error is never fast, and a gate must not pass since errors have no time. */
  private readonly latenciesMs: number[] = [];

  add({ request, status, failure, failed, latencyMs }: Outcome): void {
    if (failure === null) this.answers += 1;
    if (failed) increment(this.failures, failure ?? String(status));
    this.latenciesMs.push(failed ? Infinity : latencyMs);
    if (failure !== null || request.status === null || status === request.status) return;
    if (!failed && isRefusal(request.status, status)) this.refused += 1;
    increment(this.otherStatus, `${request.status} → ${status}`);
  }

  figures(): Figures {
    const requests = this.latenciesMs.length;
    const errorShare = requests === 0 ? 0 : sum(this.failures.values()) / requests;
    return { requests, durationMs: summarise(this.answers === 0 ? [] : this.latenciesMs), errorShare };
  }
}

/** Quantiles by the nearest rank. */
function summarise(latenciesMs: readonly number[]): LatencyFigures {
  const ascending = Float64Array.from(latenciesMs).sort();
  const quantiles = Object.entries(QUANTILES).map(([name, q]) => [
    name,
    ascending[Math.ceil(q * ascending.length) - 1] ?? NaN,
  ]);
  const mean = latenciesMs.reduce((total, ms) => total + ms, 0) / latenciesMs.length;
  return { mean, ...(Object.fromEntries(quantiles) as Record<keyof typeof QUANTILES, number>) };
}

/**
 * Nothing was done for what was served when it was recorded: 400 and above, and a redirection, as to a login, of what had none.
 * 304 is no refusal: the client has the answer.
 */
export const isRefusal = (recorded: number | null, status: number): boolean =>
  recorded !== null && recorded < 400 && status >= (recorded < 300 || recorded === 304 ? 300 : 400) && status !== 304;
