/**
 * How much may be held, in items and in bytes. Room is taken when work is armed, before anybody knows whether it will run,
 * so that what waits for its response is bounded as well.
 */
export class Room {
  private items = 0;
  private bytes = 0;
  private onReleased: () => void = () => {};

  constructor(
    readonly limit: number,
    readonly maxBytes: number = Infinity,
  ) {}

  /** Calls `listener` after each release. */
  whenReleased(listener: () => void): void {
    this.onReleased = listener;
  }

  /** It is the number of items that leaves no room, not their bytes. */
  get isFull(): boolean {
    return this.items >= this.limit;
  }

  /** Nothing is held. */
  get isEmpty(): boolean {
    return this.items === 0 && this.bytes === 0;
  }

  /** How many items more fit in. */
  get left(): number {
    return this.bytes < this.maxBytes ? this.limit - this.items : 0;
  }

  /** Takes room for one item, or none: then false. One item fits in whatever its size, when nothing else is held. */
  take(bytes = 0): boolean {
    if (this.items >= this.limit) return false;
    if (this.items > 0 && this.bytes + bytes > this.maxBytes) return false;
    this.fill(bytes);
    return true;
  }

  /** Takes room that may not be refused. */
  fill(bytes: number, items = 1): void {
    this.items += items;
    this.bytes += bytes;
  }

  release(bytes = 0, items = 1): void {
    this.items -= items;
    this.bytes -= bytes;
    this.onReleased();
  }
}
