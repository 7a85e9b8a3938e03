import type { AsyncResource } from 'node:async_hooks';

/** Something that may not take longer than its timeout. Stands in one line at the most. */
export abstract class Timed {
  /** Monotonic milliseconds. */
  abstract readonly startedMs: number;
  line: Line<this> | null = null;
  earlier: this | null = null;
  later: this | null = null;

  abstract timeOut(timeoutMs: number): void;
}

/** All with the same timeout, in the order in which they started: the first is the first to be late. */
interface Line<T> {
  readonly timeoutMs: number;
  first: T | null;
  last: T | null;
  timer: NodeJS.Timeout | null;
}

/**
 * Timeouts of many that nearly always end in time: one timer for each distinct duration, as a timer of its own would be
 * one more object to make, to link and to clear for each.
 */
export class Deadlines<T extends Timed> {
  private readonly lines = new Map<number, Line<T>>();

  constructor(
    /** Timers are made in its scope: they must not keep a request's context alive. */
    private readonly root: AsyncResource,
  ) {}

  /** Calls `timed.timeOut()` in `timeoutMs`, unless it is removed before. */
  add(timed: T, timeoutMs: number): void {
    let line = this.lines.get(timeoutMs);
    if (line === undefined) {
      line = { timeoutMs, first: null, last: null, timer: null };
      this.lines.set(timeoutMs, line);
    }
    timed.line = line;
    timed.earlier = line.last;
    if (line.last === null) line.first = timed;
    else line.last.later = timed;
    line.last = timed;
    if (line.timer === null) this.arm(line, timeoutMs);
  }

  remove(timed: T): void {
    const { line, earlier, later } = timed;
    if (line === null) return;
    if (earlier === null) line.first = later;
    else earlier.later = later;
    if (later === null) line.last = earlier;
    else later.earlier = earlier;
    timed.line = timed.earlier = timed.later = null;
  }

  /** All that have not been removed. */
  *all(): IterableIterator<T> {
    for (const line of this.lines.values()) {
      let next: T | null = null;
      for (let timed = line.first; timed !== null; timed = next) {
        next = timed.later;
        yield timed;
      }
    }
  }

  /** Forgets all, without a word to them. */
  clear(): void {
    for (const { timer } of this.lines.values()) if (timer !== null) clearTimeout(timer);
    this.lines.clear();
  }

  private arm(line: Line<T>, delayMs: number): void {
    line.timer = this.root.runInAsyncScope(setTimeout, undefined, () => this.expire(line), delayMs).unref();
  }

  private expire(line: Line<T>): void {
    line.timer = null;
    const nowMs = performance.now();
    for (let timed = line.first; timed !== null; timed = line.first) {
      const leftMs = timed.startedMs + line.timeoutMs - nowMs;
      if (leftMs > 0) {
        this.arm(line, Math.ceil(leftMs));
        return;
      }
      this.remove(timed);
      timed.timeOut(line.timeoutMs);
    }
    this.lines.delete(line.timeoutMs);
  }
}
