/** Indexes into the memory that the main thread shares with the sampler's thread, which gets this object as data. */
export const WORD = {
  /** How many beats there were. The main thread writes it and `beatAt`. */
  seq: 0,
  /** When the loop last turned, in {@link UNITS_PER_MS}; wraps, so only differences mean something. */
  beatAt: 1,
  /** One of {@link MODE}. */
  mode: 2,
  /** Microseconds in which the machine ran neither thread, as the sampler's thread has counted them. Wraps. */
  lostUs: 3,
  /** Regular samples a second; 0: samples are taken in blocks only. */
  rate: 4,
  /** How many regular samples fell due so far. One sample stands for all that fell due since the one before. */
  due: 5,
  /** When the thread requested the sample that is under way, in {@link UNITS_PER_MS}. */
  askedAt: 6,
  /** 1: the thread wants the stack as the sample's answer, for the line about a hang and for `/live`. */
  described: 7,
  /** 1 while an inspector session of the thread is connected. */
  connected: 8,
  /** 1 while a debugger may pause the main thread: a pause is no hang. */
  debugged: 9,
  /** 1 once the thread's program runs. */
  started: 10,
} as const;
export const WORDS = 11;

/** `awake`: requests arrive, and the loop beats fast. `parked`: it beats seldom. `stopped`: no sample may begin. */
export const MODE = { parked: 0, awake: 1, stopped: 2 } as const;

export const UNITS_PER_MS = 16;
/** One divided by {@link UNITS_PER_MS}. Code of the interrupt has no division sign, so that a test finds each regular expression. */
export const MS_PER_UNIT = 0.0625;

/** Shows the sampler's thread that the event loop turns: a counter and a time in shared memory. */
export class Beat {
  readonly words = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT));
  lastMs = 0;

  constructor(nowMs: number) {
    this.at(nowMs);
  }

  /** The loop turned at `nowMs` (monotonic). */
  at(nowMs: number): void {
    const { words } = this;
    words[WORD.seq] = words[WORD.seq]! + 1;
    words[WORD.beatAt] = nowMs * UNITS_PER_MS;
    this.lastMs = nowMs;
  }
}
