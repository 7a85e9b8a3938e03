/** First in, first out, without the linear cost of `Array.prototype.shift`. */
export class Fifo<T> {
  private items: (T | undefined)[] = [];
  private head = 0;

  get length(): number {
    return this.items.length - this.head;
  }

  push(item: T): void {
    this.items.push(item);
  }

  shift(): T | undefined {
    if (this.head === this.items.length) return undefined;
    const item = this.items[this.head];
    this.items[this.head++] = undefined;
    if (this.head === this.items.length) {
      this.items = [];
      this.head = 0;
    } else if (this.head >= 1024 && this.head * 2 >= this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }

  /** The first `count`, or all when there are fewer. */
  take(count: number): T[] {
    const taken: T[] = [];
    while (taken.length < count && this.length > 0) taken.push(this.shift() as T);
    return taken;
  }
}
