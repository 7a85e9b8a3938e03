/** Words of the memory that the event loop shares with the sampler's thread. The thread is given this object: plain data. */
export const WORD = {
  /** Number of the beat. Written by the loop, as the next two are. */
  seq: 0,
  /** When the loop last turned, in {@link UNITS_PER_MS}; wraps, so only differences mean something. */
  beatAt: 1,
  mode: 2,
  /** Microseconds in which the machine ran neither thread, as far as the sampler's knows. Wraps. */
  lostUs: 3,
  rate: 4,
  due: 5,
  /** When the thread has requested the sample that is under way, in {@link UNITS_PER_MS}. */
  askedAt: 6,
  described: 7,
  /** 1 while an inspector session of the thread is connected. */
  connected: 8,
  debugged: 9,
  /** 1 once the thread's program has begun. */
  started: 10,
} as const;
export const WORDS = 11;

export const MODE = { parked: 0, awake: 1, stopped: 2 } as const;

export const UNITS_PER_MS = 16;
export const MS_PER_UNIT = 0.0625;

/** Proves that the event loop turns, by a counter in shared memory: a reader may see it late, never wrong. */
export class Beat {
  readonly words = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT));
  lastMs = 0;

  constructor(
    private readonly thresholdMs: number,
    nowMs: number,
    private readonly onLate: (fromMs: number, toMs: number) => void,
  ) {
    this.restart(nowMs);
  }

  /** The loop turned at `nowMs` (monotonic). Never throws as long as its listener does not. */
  at(nowMs: number): void {
    const { lastMs } = this;
    this.restart(nowMs);
    if (nowMs - lastMs >= this.thresholdMs) this.onLate(lastMs, nowMs);
  }

  restart(nowMs: number): void {
    const { words } = this;
    words[WORD.seq] = words[WORD.seq]! + 1;
    words[WORD.beatAt] = nowMs * UNITS_PER_MS;
    this.lastMs = nowMs;
  }
}
