import type { CachedBody } from './cached-body.js';

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
  private candidate: CachedBody | null = null;
  private recorded: CachedBody | null = null;
  private recognised = 0;
  private pause = 1;
  private repeats = 0;

  /** A body of this route was found in the cache by its text or bytes. */
  repeated(entry: CachedBody): void {
    if (entry === this.recorded || entry.source.length < MIN_LENGTH) return;
    this.repeats += 1;
    if (this.repeats >= this.pause) this.candidate = entry;
  }

  /** Whether there is something to {@link find} or to learn from what was {@link serialised}. */
  get active(): boolean {
    return this.recorded !== null || this.candidate !== null;
  }

  /** The body that serialising the value would give, where it is known. */
  find(value: unknown): CachedBody | null {
    const known = this.recorded;
    if (known === null || !isValueOf(known, value)) return null;
    this.recognised += 1;
    return known;
  }

  /** A value that was not found has become `text`. */
  serialised(value: unknown, text: unknown): void {
    // Not so for what only looks in, an error for example. `JSON.stringify` makes no text of undefined.
    if (typeof text !== 'string' || text.length < MIN_LENGTH) return;
    if (this.recorded !== null) this.drop(this.recorded);
    if (this.candidate !== null) this.learn(this.candidate, value, text);
  }

  private learn(candidate: CachedBody, value: unknown, text: string): void {
    this.candidate = null;
    this.repeats = 0;
    // Express's bodies are bytes.
    if (!candidate.matches(typeof candidate.source === 'string' ? text : Buffer.from(text))) return;
    this.recognised = 0;
    if (candidate.remember(value)) this.recorded = candidate;
    else this.waitLonger();
  }

  private drop(known: CachedBody): void {
    known.forget();
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

function isValueOf(known: CachedBody, value: unknown): boolean {
  try {
    return known.value?.equals(value) === true;
  } catch {
    // A getter that throws: the serialiser meets the same error, in the place where errors are expected.
    return false;
  }
}
