import type { RequestTime, UpstreamUse } from '../core/record.js';
import type { TimeSplit } from '../request/request-state.js';
import { Stretch, type RequestCalls } from './request-calls.js';

const NO_USES: readonly UpstreamUse[] = [];
const NOTHING = new Stretch();

/** Splits the time of one request. Milliseconds. */
export class RequestTimer implements TimeSplit {
  calls: RequestCalls | null = null;
  upstream = NO_USES;
  upstreamMs = 0;
  poolWaitMs = 0;
  idleMs = 0;
  busyMs = 0;
  upstreamBusyMs = 0;
  private unplacedCalls = 0;

  constructor(
    private readonly idleMsAtStart: number,
    private readonly unplacedAtStart: number,
  ) {}

  /** Computes the parts as of now; the first four sum to `durationMs`. */
  measure(durationMs: number, loopIdleMs: number, unplaced: number): void {
    const { upstream, poolWait } = this.calls ?? { upstream: NOTHING, poolWait: NOTHING };
    this.upstreamMs = Math.min(durationMs, upstream.ms);
    this.poolWaitMs = Math.min(durationMs - this.upstreamMs, poolWait.ms);
    const restMs = durationMs - this.upstreamMs - this.poolWaitMs;
    const loopIdle = loopIdleMs - this.idleMsAtStart - upstream.idleMs - poolWait.idleMs;
    this.idleMs = Math.min(restMs, Math.max(0, loopIdle));
    this.busyMs = restMs - this.idleMs;
    this.upstreamBusyMs = Math.max(0, this.upstreamMs - upstream.idleMs);
    this.unplacedCalls = unplaced - this.unplacedAtStart;
  }

  get time(): RequestTime {
    const { upstreamMs, poolWaitMs, idleMs, busyMs, upstreamBusyMs, unplacedCalls } = this;
    return { upstreamMs, poolWaitMs, idleMs, busyMs, upstreamBusyMs, unplacedCalls };
  }
}
