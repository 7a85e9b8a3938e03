/** An item of a {@link LinkedList}; in one list at a time. */
export interface Linked<T> {
  previous: T | null;
  next: T | null;
}

// A Set's outgrown table in the old generation retains its successors and their entries (V8's `OrderedHashTable::SetNextTable`).
/** Objects that come and go with requests, in their order. */
export class LinkedList<T extends Linked<T>> {
  size = 0;
  first: T | null = null;
  private last: T | null = null;

  add(item: T): void {
    item.previous = this.last;
    if (this.last === null) this.first = item;
    else this.last.next = item;
    this.last = item;
    this.size += 1;
  }

  delete(item: T): boolean {
    const { previous, next } = item;
    if (previous === null && this.first !== item) return false;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.last = previous;
    else next.previous = previous;
    item.previous = item.next = null;
    this.size -= 1;
    return true;
  }

  shift(): T | null {
    const { first } = this;
    if (first !== null) this.delete(first);
    return first;
  }

  /** A copy: whoever walks it may delete. */
  toArray(): T[] {
    const all: T[] = [];
    for (let item = this.first; item !== null; item = item.next) all.push(item);
    return all;
  }
}
