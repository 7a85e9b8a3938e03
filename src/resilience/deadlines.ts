import type { MonotonicClock } from '../core/clock.js';
import { LinkedList, type Linked } from '../core/linked-list.js';
import { inRootContext } from '../core/root-context.js';

/** While a call is in flight a timer fires this often; its lateness measures blocks of our loop. */
const TICK_MS = 20;
/** A timer that is less late waited for other work of a busy loop, or for a CPU. */
const BLOCK_MS = 30;
/** After a block, a client may need one more turn to hand over an answer that has arrived. */
const TURNS_AFTER_BLOCK = 2;

/**
 * Called at most once, unless the deadline was ended before. `blockedMs`: how long our loop was blocked since the call began; `atMs`:
 * when the deadline was found to be due, before the sockets were read once more.
 */
export type Expired = (blockedMs: number, atMs: number) => void;

/** One call's deadline. */
export interface Deadline extends Linked<Deadline> {
  readonly dueMs: number;
  /** Total block time before the call began. */
  readonly blockedBeforeMs: number;
  readonly expired: Expired;
}

/**
 * Deadlines that know when our own loop was blocked. Timers run before sockets after a block: an answer that has arrived
 * meanwhile would be found too late. So the sockets are read once before a deadline is judged. Timers keep no process alive.
 */
export class Deadlines {
  private readonly waiting = new LinkedList<Deadline>();
  private timer: NodeJS.Timeout | undefined;
  /** Infinity without a timer. */
  private firesMs = Infinity;
  private blockedMs = 0;

  constructor(private readonly nowMs: MonotonicClock) {}

  start(startedMs: number, dueMs: number, expired: Expired): Deadline {
    // A call that starts in a block must not be charged with the part of it that has passed.
    const lateMs = startedMs - this.firesMs;
    const blockedBeforeMs = this.blockedMs + (lateMs >= BLOCK_MS ? lateMs : 0);
    const deadline: Deadline = { dueMs, blockedBeforeMs, expired, previous: null, next: null };
    this.waiting.add(deadline);
    if (dueMs < this.firesMs) this.arm(startedMs, dueMs);
    return deadline;
  }

  /** False when the deadline has expired, or was ended before. */
  end(deadline: Deadline): boolean {
    return this.waiting.delete(deadline);
  }

  private arm(nowMs: number, dueMs: number): void {
    clearTimeout(this.timer);
    const inMs = Math.max(1, Math.ceil(Math.min(TICK_MS, dueMs - nowMs)));
    this.firesMs = nowMs + inMs;
    this.timer = inRootContext(() => setTimeout(this.fired, inMs).unref());
  }

  private readonly fired = (): void => {
    const nowMs = this.nowMs();
    const lateMs = nowMs - this.firesMs;
    const blocked = lateMs >= BLOCK_MS;
    if (blocked) this.blockedMs += lateMs;
    this.firesMs = Infinity;
    let [isDue, nextMs] = [false, Infinity];
    for (const { dueMs } of this.waiting.toArray()) {
      if (dueMs <= nowMs) isDue = true;
      else if (dueMs < nextMs) nextMs = dueMs;
    }
    if (isDue) this.judgeAfterTurns(nowMs, blocked ? TURNS_AFTER_BLOCK : 1);
    if (this.waiting.size > 0) this.arm(nowMs, nextMs);
  };

  private judgeAfterTurns(dueByMs: number, turns: number): void {
    setImmediate(() => (turns > 1 ? this.judgeAfterTurns(dueByMs, turns - 1) : this.judge(dueByMs)));
  }

  /** Judges only deadlines that were due before the sockets were read: a block since then may have hidden other answers. */
  private judge(dueByMs: number): void {
    for (const deadline of this.waiting.toArray()) {
      if (deadline.dueMs > dueByMs || !this.waiting.delete(deadline)) continue;
      deadline.expired(Math.max(0, this.blockedMs - deadline.blockedBeforeMs), dueByMs);
    }
  }
}
