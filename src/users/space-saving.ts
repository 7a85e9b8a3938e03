/** One of the heaviest keys, and how sure that is: its true weight lies between `atLeast` and `atMost`. */
export interface HeavyHitter {
  readonly atLeast: number;
  readonly atMost: number;
  /** Waiting for others, of the requests that its counter has seen. */
  readonly upstreamMs: number;
}

interface Counter {
  readonly key: string;
  /** Upper bound of its weight. */
  weight: number;
  upstreamMs: number;
  /** Part of `weight` that may come from replaced keys. */
  readonly inherited: number;
  index: number;
}

/**
 * The heaviest keys of a stream in bounded memory. Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k
 * Elements in Data Streams" (2005): a key that has no counter takes the lightest one, with its weight as the error.
 */
export class SpaceSaving {
  private readonly counters = new Map<string, Counter>();
  /** A binary heap, lightest first. */
  private readonly heap: Counter[] = [];

  constructor(private readonly capacity: number) {}

  add(key: string, weight: number, upstreamMs = 0): void {
    const known = this.counters.get(key);
    if (known !== undefined) {
      known.weight += weight;
      known.upstreamMs += upstreamMs;
      this.sink(known);
      return;
    }
    const lightest = this.heap.length < this.capacity ? null : this.heap[0]!;
    const inherited = lightest?.weight ?? 0;
    const index = lightest === null ? this.heap.length : 0;
    const counter = { key, weight: inherited + weight, upstreamMs, inherited, index };
    if (lightest !== null) this.counters.delete(lightest.key);
    this.counters.set(key, counter);
    this.heap[index] = counter;
    this.rise(counter);
    this.sink(counter);
  }

  get keys(): Iterable<string> {
    return this.counters.keys();
  }

  /** Bounds of any key: one without a counter weighs at most as much as the lightest counter. */
  of(key: string): HeavyHitter {
    const counter = this.counters.get(key);
    if (counter === undefined) {
      return { atLeast: 0, atMost: this.heap.length < this.capacity ? 0 : this.heap[0]!.weight, upstreamMs: 0 };
    }
    const { weight, inherited, upstreamMs } = counter;
    return { atLeast: weight - inherited, atMost: weight, upstreamMs };
  }

  private rise(counter: Counter): void {
    for (let parent = (counter.index - 1) >> 1; counter.index > 0; parent = (counter.index - 1) >> 1) {
      const above = this.heap[parent]!;
      if (above.weight <= counter.weight) return;
      this.swap(counter, above);
    }
  }

  private sink(counter: Counter): void {
    for (;;) {
      const left = 2 * counter.index + 1;
      if (left >= this.heap.length) return;
      const [a, b] = [this.heap[left]!, this.heap[left + 1]];
      const lighter = b !== undefined && b.weight < a.weight ? b : a;
      if (lighter.weight >= counter.weight) return;
      this.swap(lighter, counter);
    }
  }

  private swap(a: Counter, b: Counter): void {
    [a.index, b.index] = [b.index, a.index];
    this.heap[a.index] = a;
    this.heap[b.index] = b;
  }
}
