import type { Answer } from './client.js';
import { increment, sum } from './counts.js';
import { Latencies, type LatencyFigures } from './figures.js';
import type { TrafficRequest } from './traffic.js';

export interface Outcome extends Answer {
  readonly index: number;
  readonly request: TrafficRequest;
  /** From the intended start to the end of the answer. */
  readonly latencyMs: number;
  readonly failed: boolean;
}

/** What a gate judges, and what is told. */
export interface Figures {
  readonly requests: number;
  readonly durationMs: LatencyFigures;
  /** 0 to 1 */
  readonly errorShare: number;
}

/** What has become of the requests of a run, or of one of its routes. */
export class Outcomes {
  readonly latencies = new Latencies();
  /** Why answers count as failed: `'timeout'`, `'503'`. */
  readonly failures = new Map<string, number>();
  /** Answers with another status than was expected, by `'200 → 401'`. */
  readonly otherStatus = new Map<string, number>();
  /** Of any status. */
  answers = 0;
  /** Answers that have not failed, and still have not done what was done when it was recorded. */
  refused = 0;
  private count = 0;

  add({ request, status, failure, failed, latencyMs }: Outcome): void {
    this.count += 1;
    if (failure === null) this.answers += 1;
    if (failed) increment(this.failures, failure ?? String(status));
    // An error is never fast, and a gate must not pass since errors have no time.
    this.latencies.add(failed ? Infinity : latencyMs);
    if (failure !== null || request.status === null || status === request.status) return;
    if (!failed && isRefusal(request.status, status)) this.refused += 1;
    increment(this.otherStatus, `${request.status} → ${status}`);
  }

  figures(): Figures {
    const errorShare = this.count === 0 ? 0 : sum(this.failures.values()) / this.count;
    const latencies = this.answers === 0 ? new Latencies() : this.latencies;
    return { requests: this.count, durationMs: latencies.figures(), errorShare };
  }
}

/**
 * Nothing was done for what was served when it was recorded: 400 and above, and a redirection, as to a login, of what had none.
 * 304 is no refusal: the client has the answer.
 */
export const isRefusal = (recorded: number | null, status: number): boolean =>
  recorded !== null && recorded < 400 && status >= (recorded < 300 || recorded === 304 ? 300 : 400) && status !== 304;
