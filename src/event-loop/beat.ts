/** Words of the memory that the event loop shares with its watchdog. Only the loop writes the first three. */
export const SEQ = 0;
/** When the loop last turned, in {@link UNITS_PER_MS}; wraps, so only differences mean something. */
export const BEAT_AT = 1;
export const MODE = 2;
/** How often the watchdog has polled. */
export const POLLS = 3;
/** Microseconds by which the watchdog's own polls came late: it was not scheduled. Wraps. */
export const STARVED_US = 4;
/** Microseconds that the main thread was runnable but not running while it stood still. Wraps; 0 where unknown. */
export const RUN_DELAY_US = 5;
const WORDS = 8;

/** Values of {@link MODE}. */
export const PARKED = 0;
export const ARMED = 1;
export const STOPPED = 2;

export const UNITS_PER_MS = 16;

/** Called when two beats lay further apart than the threshold. `seq` is the number that the loop had meanwhile. */
export type LateListener = (seq: number, fromMs: number, toMs: number) => void;

/**
 * The proof that the event loop turns: a counter in shared memory, moved at each tick and, at most every `beatMs` (see timing.ts),
 * at a request's start or end. A plain store is enough: the watchdog may see it late, never wrong.
 */
export class Beat {
  readonly words = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT));
  /** Monotonic milliseconds. */
  lastMs = 0;

  constructor(
    private readonly thresholdMs: number,
    nowMs: number,
    private readonly onLate: LateListener,
  ) {
    this.restart(nowMs);
  }

  /** The loop turned at `nowMs` (monotonic). Never throws as long as its listener does not. */
  at(nowMs: number): void {
    const { lastMs } = this;
    const seq = this.words[SEQ]!;
    this.restart(nowMs);
    if (nowMs - lastMs >= this.thresholdMs) this.onLate(seq, lastMs, nowMs);
  }

  /** The same; what was before is nobody's business. */
  restart(nowMs: number): void {
    const { words } = this;
    words[SEQ] = words[SEQ]! + 1;
    words[BEAT_AT] = nowMs * UNITS_PER_MS;
    this.lastMs = nowMs;
  }
}
