import type { CachedBody } from './cached-body.js';
import { KnownValue } from './known-value.js';

/** From here on comparing the value is worth what keeping it costs. */
const MIN_LENGTH = 32 * 1024;
/** A value that was recognised less often than that was not worth recording. */
const WORTH = 4;
/** Longest pause before another value is recorded, in repeated bodies. */
const MAX_PAUSE = 256;

/**
 * The large body that a route's handler returns again and again, as a value: while it is the same, it need not be serialised to
 * find out. Making the text is what a large response costs once its encoding is cached.
 */
export class RepeatedBody {
  // The cache holds them; what it has evicted is not to be held by the routes.
  private candidate: WeakRef<CachedBody> | null = null;
  private recorded: WeakRef<CachedBody> | null = null;
  /** What was asked for last and not found, as it was before it was serialised. */
  private asked: KnownValue | null = null;
  private recognised = 0;
  private pause = 1;
  private repeats = 0;

  /** A body of this route was found in the cache by its text or bytes. */
  repeated(entry: CachedBody): void {
    if (entry.source.length < MIN_LENGTH || entry === this.recorded?.deref()) return;
    this.repeats += 1;
    if (this.repeats >= this.pause && entry !== this.candidate?.deref()) this.candidate = new WeakRef(entry);
  }

  /** Whether there is something to {@link find} or to learn from what was {@link serialised}. */
  get active(): boolean {
    return this.recorded !== null || this.candidate !== null;
  }

  /** The body that serialising the value would give, where it is known. */
  find(value: unknown): CachedBody | null {
    const known = this.recorded?.deref() ?? null;
    if (known !== null && isValueOf(known, value)) {
      this.recognised += 1;
      return known;
    }
    this.asked = this.candidate === null ? null : knownValueOf(value);
    return null;
  }

  /** A value that was not found has become `text`. */
  serialised(value: unknown, text: unknown): void {
    const { asked, candidate, recorded } = this;
    this.asked = null;
    // Not so for what only looks in, an error for example. `JSON.stringify` makes no text of undefined.
    if (typeof text !== 'string' || text.length < MIN_LENGTH) return;
    if (recorded !== null) this.drop(recorded.deref() ?? null);
    if (candidate !== null) this.learn(candidate.deref() ?? null, asked, value, text);
  }

  private learn(candidate: CachedBody | null, asked: KnownValue | null, value: unknown, text: string): void {
    this.candidate = null;
    this.repeats = 0;
    // Express's bodies are bytes.
    if (!candidate?.matches(typeof candidate.source === 'string' ? text : Buffer.from(text))) return;
    this.recognised = 0;
    // The same before and after: a getter that tells the time has not moved on while the text was made.
    if (asked !== null && equal(asked, value) && candidate.remember(asked)) this.recorded = new WeakRef(candidate);
    else this.waitLonger();
  }

  private drop(known: CachedBody | null): void {
    known?.forget();
    this.recorded = null;
    this.repeats = 0;
    if (this.recognised >= WORTH) this.pause = 1;
    else this.waitLonger();
  }

  /** Values that take turns, or that cannot be compared, would be walked through for nothing: twice as long a pause each time. */
  private waitLonger(): void {
    this.pause = Math.min(this.pause * 2, MAX_PAUSE);
  }
}

const isValueOf = (known: CachedBody, value: unknown): boolean => known.value !== null && equal(known.value, value);

function equal(known: KnownValue, value: unknown): boolean {
  try {
    return known.equals(value);
  } catch {
    // A getter that throws: the serialiser meets the same error, in the place where errors are expected.
    return false;
  }
}

function knownValueOf(value: unknown): KnownValue | null {
  try {
    return KnownValue.of(value);
  } catch {
    // A getter that throws: not a value to rely on.
    return null;
  }
}
