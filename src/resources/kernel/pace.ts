/** Says when something that is dear or rarely changes is due again. Created due. */
export class Pace {
  private lastMs = -Infinity;

  constructor(private readonly everyMs: number) {}

  /** Whether it is due; if so, it is taken as done at `nowMs`. A clock that went back makes it due as well. */
  due(nowMs: number): boolean {
    if (Math.abs(nowMs - this.lastMs) < this.everyMs) return false;
    this.lastMs = nowMs;
    return true;
  }

  /** It was done without being due. */
  done(nowMs: number): void {
    this.lastMs = nowMs;
  }
}
