import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { LATE_MS } from '../timing.js';
import { type HeapSize, V8HeapSize } from './heap-size.js';

// `looked()` runs inside an interrupt, on top of whatever blocks the loop: nothing there may be the application's, so what it
// calls of the language and of Node is kept from before anybody could replace it.
const { apply } = Reflect;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { observe } = PerformanceObserver.prototype;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { deref } = WeakRef.prototype;
/** All that Node reads, so that nothing is read that others have put on the prototype of objects. */
const OBSERVE_GC = Object.freeze({ entryTypes: ['gc'], type: undefined, buffered: undefined });

/** Shorter collections cannot make a block. */
const MIN_MS = 1;
const KEPT = 256;
/**
 * A forced collection was measured to take up to 1 ms per MB of live small objects, a usual one of a Nest application's own
 * 30 MB 5 ms. A heap of so many bytes per millisecond of the threshold may have one that is twice the threshold.
 */
const BYTES_PER_THRESHOLD_MS = 2e6;
/** No collection is believed to take longer than this for what it has to walk: twice what was measured. */
const MAX_MS_PER_BYTE = 2e-6;
/** Near its limit a heap is collected over and over, however small it is. */
const SHARE_OF_LIMIT = 0.5;
/** To ask V8 for the heap's size takes some microseconds. */
const MEASURED_EVERY_MS = 100;
/** Once asked for, observed so long at least: entries come late. */
const LEAST_MS = 100;
/** The entries of a standstill come after it; and a loop that stood still may soon do so again. */
const AFTER_STANDSTILL_MS = 1_000;
/**
 * As arguments of a call: 64 KB of stack. Node's `observe()` needs less than 8 KB, also where V8 has to compile it first.
 */
const ROOM: readonly number[] = Object.freeze(Array.from({ length: 8_192 }, () => 0));

/**
 * Remembers the last garbage collections. Entries come in a later turn, so ask one turn after the time in question.
 *
 * A collection costs some 200 µs more while it is observed: Node (20 to 24) makes four deprecated accessors for each entry,
 * and a busy loop collects 40 times a second. So it is done only where one can matter: with a heap that takes long to
 * collect, from the first look at a standstill until some time after it, and while nobody would look; `looked()` tells when
 * another one may have mattered. (A `v8.GCProfiler` that is read after each collection was measured to be no cheaper, and tells
 * no times.)
 */
export class GcObserver {
  private readonly startMs = new Float64Array(KEPT);
  private readonly endMs = new Float64Array(KEPT);
  private count = 0;
  private observer: PerformanceObserver | null = null;
  private observedSinceMs = Infinity;
  /** Asked for until then, monotonic milliseconds. */
  private untilMs = -Infinity;
  private measuredMs = -Infinity;
  /**
   * What a full collection takes away. It is asked for as seldom as can be: to ask makes the collector keep it. V8 tells of its
   * end in a later turn, and another one takes its place. Collections of the young generation leave it alone; how long one may
   * have taken shows in what it left.
   */
  private witness = new WeakRef({});
  private readonly witnessEnds = new FinalizationRegistry(() => {
    if (this.observer !== null) this.renewWitness();
  });
  private readonly largeBytes: number;

  /** `cheap`: observing costs nothing to speak of, so it is always done. */
  constructor(
    thresholdMs: number,
    cheap: boolean,
    private readonly heap: HeapSize = new V8HeapSize(),
  ) {
    const limitBytes = getHeapStatistics().heap_size_limit;
    this.largeBytes = cheap ? 0 : Math.min(thresholdMs * BYTES_PER_THRESHOLD_MS, limitBytes * SHARE_OF_LIMIT);
  }

  start(): void {
    this.observer ??= new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) this.add(startTime, duration);
    });
    this.renewWitness();
  }

  stop(): void {
    this.observer?.disconnect();
    this.observer = null;
    this.observedSinceMs = Infinity;
    this.witnessEnds.unregister(this);
  }

  /** Since when collections are observed, monotonic milliseconds; Infinity: they are not. */
  get sinceMs(): number {
    return this.observedSinceMs;
  }

  /** The loop turns. `looks`: whether a standstill would be looked at. */
  ticked(nowMs: number, looks: boolean): void {
    if (this.observer === null) return;
    if (!looks) this.atLeastUntil(nowMs + LEAST_MS);
    if (nowMs - this.measuredMs >= MEASURED_EVERY_MS) {
      this.measuredMs = nowMs;
      if (this.heap.measure() >= this.largeBytes) this.atLeastUntil(nowMs + MEASURED_EVERY_MS + LEAST_MS);
    }
    if (nowMs < this.untilMs) this.observe(nowMs);
    else if (this.observedSinceMs !== Infinity) {
      this.observer.disconnect();
      this.observedSinceMs = Infinity;
    }
  }

  /**
   * The loop stands still and is looked at. Called inside the interrupt. Returns how long at most a collection that was not
   * observed may have held the look up, milliseconds: 0 where none can have.
   */
  looked(requestedMs: number, servedMs: number): number {
    this.atLeastUntil(servedMs + LEAST_MS);
    if (this.observedSinceMs <= requestedMs) return 0;
    // An error in the middle of `observe()` would leave Node's count of observers wrong, for everybody.
    if (!hasRoom()) return Infinity;
    this.observe(servedMs);
    if (servedMs - requestedMs <= LATE_MS) return 0;
    const full = apply(deref, this.witness, NO_ARGUMENTS) === undefined;
    return (full ? this.heap.mostBytes() : this.heap.survivedBytes()) * MAX_MS_PER_BYTE;
  }

  /** The loop has stood still for longer than the threshold. */
  stoodStill(nowMs: number): void {
    this.atLeastUntil(nowMs + AFTER_STANDSTILL_MS);
  }

  add(startMs: number, durationMs: number): void {
    if (durationMs < MIN_MS) return;
    const index = this.count % KEPT;
    this.startMs[index] = startMs;
    this.endMs[index] = startMs + durationMs;
    this.count += 1;
  }

  /** Milliseconds of observed collection between two monotonic times. */
  within(fromMs: number, toMs: number): number {
    let sum = 0;
    for (let i = 0; i < Math.min(this.count, KEPT); i++) {
      sum += Math.max(0, Math.min(toMs, this.endMs[i]!) - Math.max(fromMs, this.startMs[i]!));
    }
    return Math.max(0, Math.min(sum, toMs - fromMs));
  }

  private renewWitness(): void {
    const witness = {};
    this.witness = new WeakRef(witness);
    this.witnessEnds.register(witness, null, this);
  }

  private atLeastUntil(ms: number): void {
    if (ms > this.untilMs) this.untilMs = ms;
  }

  private observe(nowMs: number): void {
    if (this.observer === null || this.observedSinceMs !== Infinity) return;
    // First, so that a look in the middle of this does not begin it again.
    this.observedSinceMs = nowMs;
    apply(observe, this.observer, [OBSERVE_GC]);
  }
}

/** Whether the stack is far from its end. Where it is not, the next look may find it so. */
function hasRoom(): boolean {
  try {
    apply(takeRoom, undefined, ROOM);
    return true;
  } catch {
    return false;
  }
}

const NO_ARGUMENTS: readonly never[] = Object.freeze([]);
const takeRoom = (): void => {};
