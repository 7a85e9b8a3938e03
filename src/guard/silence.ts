/** Of an upstream's deadlines, for so many our loop must have turned while it was asked and answered nobody. */
const DEADLINES = 5;

/** For how long an upstream has answered nobody: on a loop that is often blocked, one that is dead would never be to blame. */
export class Silence {
  private turnedMs = 0;
  private untilMs = -Infinity;

  answered(): void {
    this.turnedMs = 0;
  }

  /** A call has ended without an answer. Those that were under way together are one witness: a single block has ended them all. */
  isTooLong(startedMs: number, endedMs: number, turnedMs: number, deadlineMs: number): boolean {
    if (startedMs >= this.untilMs) {
      this.turnedMs += Math.max(0, turnedMs);
      this.untilMs = endedMs;
    }
    return this.turnedMs >= DEADLINES * deadlineMs;
  }
}
