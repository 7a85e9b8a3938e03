/** Timers count whole milliseconds: a start may be so much too early, and its latency counts from when it really was. */
const EARLY_MS = 1;

/** Time since the start of the run. */
export interface Pace {
  readonly nowMs: () => number;
  /** No more starts. */
  cancel(): void;
}

/** Calls `start` for each of the offsets (ascending milliseconds) when its time has come. Resolves after the last one. */
export function pace(offsetsMs: Float64Array, start: (index: number, pace: Pace) => void): Promise<Pace> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    let next = 0;
    const own: Pace = {
      nowMs: () => performance.now() - startedMs,
      cancel: () => void (next = offsetsMs.length),
    };
    const tick = (): void => {
      try {
        while (next < offsetsMs.length && offsetsMs[next]! - own.nowMs() <= EARLY_MS) start(next++, own);
      } catch (error) {
        reject(error);
        return;
      }
      if (next < offsetsMs.length) setTimeout(tick, Math.floor(offsetsMs[next]! - own.nowMs()));
      else resolve(own);
    };
    tick();
  });
}

/** So many starts a second, evenly. */
export function evenly(ratePerSecond: number, forMs: number): Float64Array {
  const count = Math.max(1, Math.round((ratePerSecond * forMs) / 1_000));
  return Float64Array.from({ length: count }, (_, i) => (i * 1_000) / ratePerSecond);
}
