/**
 * How many items may be held. Room is taken when work is armed, before anybody knows whether it will run, so that what
 * waits for its response is bounded as well.
 */
export class Room {
  private held = 0;
  private onReleased: () => void = () => {};

  constructor(readonly limit: number) {}

  /** Calls `listener` after each release. */
  whenReleased(listener: () => void): void {
    this.onReleased = listener;
  }

  get taken(): number {
    return this.held;
  }

  /** Takes room for `count` items at once, or none: then false. */
  take(count = 1): boolean {
    if (this.held + count > this.limit) return false;
    this.held += count;
    return true;
  }

  release(count = 1): void {
    this.held -= count;
    this.onReleased();
  }
}
