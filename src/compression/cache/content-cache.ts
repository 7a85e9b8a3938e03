import { createHash } from 'node:crypto';
import { unpooled } from '../../core/unpooled.js';
import type { Compressor, Encoded } from '../codec/compressor.js';
import type { ContentCoding } from '../rules/accept-encoding.js';
import { isThenable } from '../../core/thenable.js';

/** A response body as frameworks hand it over. */
export type Body = string | Uint8Array;

/** The body as bytes, without a copy where it is bytes already. */
export const bytesOf = (body: Body): Uint8Array => (typeof body === 'string' ? Buffer.from(body) : body);

/** A strong tag of the identity representation. */
export const contentTag = (body: Body): string =>
  `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;

/** Cost of one entry besides its body, bytes: objects, map slots, headers. Bounds the number of small entries. */
const OVERHEAD_BYTES = 1024;
/** Most URLs of one body; the oldest makes room for one more. With so many, the body does not depend on some part of the URL. */
const MAX_HOLDERS = 1_000;

/** V8 keeps a text beyond Latin-1 with two bytes a character. One that has other bytes than characters may be such a text. */
const bytesInMemory = (body: Body, byteLength: number): number =>
  typeof body === 'string' && byteLength !== body.length ? 2 * body.length : byteLength;

/** The body in a coding, null where it would not be smaller; or the promise of it. */
type Made = Encoded | null | Promise<Encoded | null>;

/** One body and everything it has been encoded to. */
export class CachedBody {
  readonly source: Body;
  readonly byteLength: number;
  hits = 0;
  /** Bytes it is charged with, encodings included. Changed by {@link onGrowth} only. */
  bytes: number;
  /** URLs of the body, oldest first: the callback of its eviction, and the bytes that the URL adds. */
  private readonly holders = new Map<() => void, number>();
  private readonly made = new Map<ContentCoding, Made>();
  private ownTag: string | null = null;

  constructor(
    body: Body,
    private readonly onGrowth: (entry: CachedBody, bytes: number) => void,
  ) {
    // A buffer is copied: the application may write into its own after it was sent, and it must not reach the cache.
    this.source = typeof body === 'string' ? body : unpooled(body);
    this.byteLength = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
    this.bytes = OVERHEAD_BYTES + bytesInMemory(body, this.byteLength);
  }

  /** Strong entity tag of the identity representation; computed at its first use, in 2 ms at 3 MB. */
  get tag(): string {
    return (this.ownTag ??= contentTag(this.source));
  }

  /** Whether some URL keeps the body. */
  get held(): boolean {
    return this.holders.size > 0;
  }

  /** Compares exactly, never by a hash alone: no client may ever get another client's body. */
  matches(body: Body): boolean {
    const { source } = this;
    if (typeof source === 'string' || typeof body === 'string') return source === body;
    return Buffer.compare(source, body) === 0;
  }

  /** Keeps the body for a URL, charged with `bytes`; its eviction calls `onEvicted`. Returns the function that undoes both. */
  hold(bytes: number, onEvicted: () => void): () => void {
    const release = (): void => {
      if (this.holders.delete(onEvicted)) this.onGrowth(this, -bytes);
    };
    const [oldest] = this.holders.keys();
    this.holders.set(onEvicted, bytes);
    this.onGrowth(this, bytes);
    if (oldest !== undefined && this.holders.size > MAX_HOLDERS) {
      this.onGrowth(this, -this.holders.get(oldest)!);
      this.holders.delete(oldest);
      oldest();
    }
    return release;
  }

  /** Called when the cache has removed the body. */
  evict(): void {
    const holders = [...this.holders.keys()];
    this.holders.clear();
    for (const onEvicted of holders) onEvicted();
  }

  /** The codings that were requested so far. */
  get codings(): ContentCoding[] {
    return [...this.made.keys()];
  }

  /** Encodes once for any number of callers. Rejects or throws when the compressor fails; the next call tries again. */
  encoded(coding: ContentCoding, compressor: Compressor, shared: boolean): Made {
    const made = this.made.get(coding);
    return made === undefined ? this.make(coding, compressor, shared) : made;
  }

  private make(coding: ContentCoding, compressor: Compressor, shared: boolean): Made {
    const made = compressor.encode(coding, bytesOf(this.source), shared ? 'shared' : 'once');
    if (!isThenable(made)) return this.keep(coding, made);
    const pending = made.then(
      (encoded) => this.keep(coding, encoded),
      (error: unknown) => {
        this.made.delete(coding);
        throw error;
      },
    );
    this.made.set(coding, pending);
    return pending;
  }

  private keep(coding: ContentCoding, encoded: Encoded | null): Encoded | null {
    // zlib returns a view of a larger buffer.
    const kept = encoded === null ? null : { level: encoded.level, bytes: unpooled(encoded.bytes) };
    this.made.set(coding, kept);
    this.onGrowth(this, kept?.bytes.byteLength ?? 0);
    return kept;
  }
}

/** Bodies of one length that are compared with a new one; more would make the comparison dearer than the compression. */
const MAX_PER_LENGTH = 8;

/** One body takes at most a tenth of the cache, so that none evicts all others; a body shared by decorator takes at most half. */
const MAX_SHARE = 10;
const MAX_SHARE_OF_OTHERS = 2;

/** Bodies and their encodings, found by exact comparison, bounded by bytes, the least recently used evicted first. */
export class ContentCache {
  private readonly byLength = new Map<number, CachedBody[]>();
  /** Entries in the order of use. */
  private readonly entries = new Set<CachedBody>();
  private held = 0;

  constructor(private readonly maxBytes: number) {}

  /** Bytes in use: bodies, all their encodings and the entries' own overhead. */
  get bytes(): number {
    return this.held;
  }

  find(body: Body): CachedBody | null {
    const found = this.byLength.get(body.length)?.find((candidate) => candidate.matches(body)) ?? null;
    if (found !== null) this.touch(found);
    return found;
  }

  has(entry: CachedBody): boolean {
    return this.entries.has(entry);
  }

  /** Marks an entry as used. */
  touch(entry: CachedBody): void {
    if (!this.entries.delete(entry)) return;
    this.entries.add(entry);
    entry.hits += 1;
  }

  /**
   * Adds a body; null when it is too large, or could not be found among those of its length. `forOthers`: its caller keeps a
   * reference, so it is worth its room all the same.
   */
  add(body: Body, forOthers = false): CachedBody | null {
    const maxBytes = this.maxBytes / (forOthers ? MAX_SHARE_OF_OTHERS : MAX_SHARE);
    // Refuses before a copy or a hash is made.
    if (body.length > maxBytes) return null;
    const entry = new CachedBody(body, (grown, bytes) => this.charge(grown, bytes));
    if (entry.bytes > maxBytes) return null;
    this.makeRoom(entry.bytes);
    const { length } = body;
    const siblings = this.byLength.get(length) ?? [];
    const canBeFound = siblings.length < MAX_PER_LENGTH || this.evictOneOf(siblings);
    if (!canBeFound && !forOthers) return null;
    // Reads the list again: the entry that made room is gone.
    if (canBeFound) this.byLength.set(length, [...(this.byLength.get(length) ?? []), entry]);
    this.entries.add(entry);
    this.held += entry.bytes;
    return entry;
  }

  /** Charges an entry with more (or fewer) bytes. */
  charge(entry: CachedBody, bytes: number): void {
    entry.bytes += bytes;
    if (!this.entries.has(entry)) return;
    this.held += bytes;
    this.makeRoom(0);
  }

  evict(entry: CachedBody): void {
    if (!this.entries.delete(entry)) return;
    this.held -= entry.bytes;
    const { length } = entry.source;
    const siblings = (this.byLength.get(length) ?? []).filter((other) => other !== entry);
    if (siblings.length === 0) this.byLength.delete(length);
    else this.byLength.set(length, siblings);
    entry.evict();
  }

  clear(): void {
    for (const entry of this.entries) this.evict(entry);
  }

  private evictOneOf(siblings: readonly CachedBody[]): boolean {
    // Siblings are in the order of arrival; the one with the fewest hits goes first.
    const victim = siblings.filter((entry) => !entry.held).sort((a, b) => a.hits - b.hits)[0];
    if (victim === undefined) return false;
    this.evict(victim);
    return true;
  }

  private makeRoom(bytes: number): void {
    for (const entry of this.entries) {
      if (this.held + bytes <= this.maxBytes) return;
      this.evict(entry);
    }
  }
}
