import { crc32 } from 'node:zlib';
import { isThenable } from '../core/thenable.js';
import { unpooled } from '../core/unpooled.js';
import type { Compressor, Encoded } from './codec.js';
import type { ContentCoding } from './rules/accept-encoding.js';

/** A response body as frameworks pass it. */
export type Body = string | Uint8Array;

export const isChunk = (chunk: unknown): chunk is Body => typeof chunk === 'string' || chunk instanceof Uint8Array;
export const mayEnd = (chunk: unknown): boolean =>
  chunk === undefined || chunk === null || typeof chunk === 'function' || isChunk(chunk);

const readEncoding = (encoding: unknown): BufferEncoding =>
  typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8';
/** Node sends no text of a HEAD, and accepts any name of its encoding. */
export const replaceUnknown = (encoding: unknown): unknown =>
  Buffer.isEncoding(encoding as string) ? encoding : 'utf8';
export function countBytes(chunk: unknown, encoding: unknown): number {
  if (typeof chunk === 'string') return Buffer.byteLength(chunk, readEncoding(encoding));
  return chunk instanceof Uint8Array ? chunk.byteLength : 0;
}
export const toBytes = (chunk: Body, encoding: unknown): Uint8Array =>
  typeof chunk === 'string' ? Buffer.from(chunk, readEncoding(encoding)) : chunk;

/** A text whose bytes are those of UTF-8 stays one: the cache compares it as it is. */
export const normalizeText = (chunk: Body, encoding: unknown): Body =>
  typeof chunk !== 'string' || readEncoding(encoding).toLowerCase().replace('-', '') === 'utf8'
    ? chunk
    : toBytes(chunk, encoding);

/** A strong tag of a body that is sent without a coding: its length and CRC-32. The cache itself compares whole bodies. */
export const makeTag = (body: Body): string => `"${body.length.toString(36)}-${crc32(body).toString(36)}"`;

/** Cost of one entry besides its body, bytes: objects, map slots, headers. Bounds the number of small entries. */
const OVERHEAD_BYTES = 1024;

/** V8 keeps a text beyond Latin-1 with two bytes a character. One that has other bytes than characters may be such a text. */
const countMemory = (body: Body, byteLength: number): number =>
  typeof body === 'string' && byteLength !== body.length ? 2 * body.length : byteLength;

/** One body and everything it has been encoded to. */
export class CachedBody {
  readonly source: Body;
  readonly byteLength: number;
  /** Bytes that the cache counts, encodings included. Changed by the cache only. */
  bytes: number;
  private readonly made = new Map<ContentCoding, Encoded>();
  private knownTag: string | null = null;

  constructor(
    body: Body,
    private readonly grow: (entry: CachedBody, bytes: number) => void,
    /** Called when the cache has removed the body. */
    readonly onEvicted: (entry: CachedBody) => void,
  ) {
    // A buffer is copied: the application may write into its own after it was sent, and it must not reach the cache.
    this.source = typeof body === 'string' ? body : unpooled(body);
    this.byteLength = Buffer.byteLength(body);
    this.bytes = OVERHEAD_BYTES + countMemory(body, this.byteLength);
  }

  /** Tag of the body without a coding; computed at its first use, in 1 ms at 3 MB. */
  get tag(): string {
    return (this.knownTag ??= makeTag(this.source));
  }

  /** Compares exactly, never by a hash alone: no client may ever get another client's body. */
  matches(body: Body): boolean {
    const { source } = this;
    if (typeof source === 'string' || typeof body === 'string') return source === body;
    return Buffer.compare(source, body) === 0;
  }

  /** The codings that were requested so far. */
  get codings(): ContentCoding[] {
    return [...this.made.keys()];
  }

  /** Encodes once for any number of callers. Rejects or throws when the compressor fails; the next call tries again. */
  encoded(coding: ContentCoding, compressor: Compressor, shared: boolean): Encoded {
    const made = this.made.get(coding);
    return made === undefined ? this.make(coding, compressor, shared) : made;
  }

  private make(coding: ContentCoding, compressor: Compressor, shared: boolean): Encoded {
    const body = typeof this.source === 'string' ? Buffer.from(this.source) : this.source;
    const made = compressor.encode(coding, body, shared ? 'shared' : 'once');
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

  private keep(coding: ContentCoding, encoded: Buffer | null): Buffer | null {
    // zlib returns a view of a larger buffer.
    const kept = encoded === null ? null : unpooled(encoded);
    this.made.set(coding, kept);
    this.grow(this, kept?.byteLength ?? 0);
    return kept;
  }
}

/** Bodies of one length that are compared with a new one; more would make the comparison dearer than the compression. */
const MAX_PER_LENGTH = 8;
/** Slots for bodies that were seen once; a newer one may take the slot of an older one. */
const SEEN_SLOTS = 1024;

/** One body takes at most a tenth of the cache, so that none evicts all others; a body shared by decorator takes at most half. */
const MAX_SHARE = 10;
const MAX_SHARE_OF_OTHERS = 2;

/** Bodies and their encodings, bounded by bytes, the least recently used evicted first. */
export class ContentCache {
  private readonly byLength = new Map<number, CachedBody[]>();
  /** Entries in the order of use. */
  private readonly entries = new Set<CachedBody>();
  private readonly seen = new Uint32Array(SEEN_SLOTS);
  private held = 0;

  constructor(private readonly maxBytes: number) {}

  /** Bytes in use: bodies, all their encodings and the entries' own overhead. */
  get bytes(): number {
    return this.held;
  }

  /** Finds a body that was added, by exact comparison. */
  find(body: Body): CachedBody | null {
    const found = this.byLength.get(body.length)?.find((candidate) => candidate.matches(body)) ?? null;
    if (found !== null) this.touch(found);
    return found;
  }

  /** Whether a body has come before, by its tag: bodies that never repeat are not kept. */
  hasSeen(tag: string): boolean {
    const sum = crc32(tag);
    const slot = sum % SEEN_SLOTS;
    const isSeen = this.seen[slot] === sum;
    this.seen[slot] = sum;
    return isSeen;
  }

  has(entry: CachedBody): boolean {
    return this.entries.has(entry);
  }

  /** Marks an entry as used. */
  touch(entry: CachedBody): void {
    if (this.entries.delete(entry)) this.entries.add(entry);
  }

  /** Adds a body that {@link find} finds; null when it is too large. */
  add(body: Body): CachedBody | null {
    const { length } = body;
    const entry = this.enter(body, this.maxBytes / MAX_SHARE, 0, (evicted) => {
      const others = this.byLength.get(length)!.filter((other) => other !== evicted);
      if (others.length === 0) this.byLength.delete(length);
      else this.byLength.set(length, others);
    });
    if (entry === null) return null;
    const siblings = [...(this.byLength.get(length) ?? []), entry];
    this.byLength.set(length, siblings);
    if (siblings.length > MAX_PER_LENGTH) this.evict(siblings[0]!);
    return entry;
  }

  /** Keeps a body for others, with `bytes` beside it; null when it is too large. `onEvicted` is called when it has gone. */
  keep(body: Body, bytes: number, onEvicted: CachedBody['onEvicted']): CachedBody | null {
    return this.enter(body, this.maxBytes / MAX_SHARE_OF_OTHERS, bytes, onEvicted);
  }

  evict(entry: CachedBody): void {
    if (!this.entries.delete(entry)) return;
    this.held -= entry.bytes;
    entry.onEvicted(entry);
  }

  clear(): void {
    for (const entry of this.entries) this.evict(entry);
  }

  private enter(
    body: Body,
    maxBytes: number,
    besideBytes: number,
    onEvicted: CachedBody['onEvicted'],
  ): CachedBody | null {
    // Refuses before a copy is made.
    if (body.length > maxBytes) return null;
    const entry = new CachedBody(body, (grown, bytes) => this.charge(grown, bytes), onEvicted);
    if (entry.bytes > maxBytes) return null;
    this.entries.add(entry);
    this.held += entry.bytes;
    this.charge(entry, besideBytes);
    return entry;
  }

  private charge(entry: CachedBody, bytes: number): void {
    entry.bytes += bytes;
    if (!this.entries.has(entry)) return;
    this.held += bytes;
    for (const oldest of this.entries) {
      if (this.held <= this.maxBytes) return;
      this.evict(oldest);
    }
  }
}
