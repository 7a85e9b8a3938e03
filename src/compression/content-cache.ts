import { crc32 } from 'node:zlib';
import { isThenable } from '../core/thenable.js';
import type { Compressor, Encoded } from './codec.js';
import type { ContentCoding } from './rules/accept-encoding.js';

/** A copy in memory of its own: what is kept for long must not keep Node's pool, or a larger buffer, with it. */
function unpooled(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.byteLength);
  copy.set(bytes);
  return copy;
}

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

/** Texts in UTF-8 stay texts: the cache compares them without encoding them. */
export const normalizeText = (chunk: Body, encoding: unknown): Body =>
  typeof chunk !== 'string' || readEncoding(encoding).toLowerCase().replace('-', '') === 'utf8'
    ? chunk
    : toBytes(chunk, encoding);

/** A strong entity tag of an unencoded body: its bytes' number and CRC-32. The cache itself compares whole bodies. */
export const makeTag = (body: Body): string => `"${Buffer.byteLength(body).toString(36)}-${crc32(body).toString(36)}"`;

/** Objects, map slots and headers of one entry, bytes: without it small entries would be unbounded. */
const OVERHEAD_BYTES = 1024;

/** V8 stores a text with any character beyond Latin-1 as two bytes a character: all that is not ASCII may be such a text. */
const countMemory = (body: Body, byteLength: number): number =>
  typeof body === 'string' && byteLength !== body.length ? 2 * body.length : byteLength;

/** One body and everything it has been encoded to. */
export class CachedBody {
  readonly source: Body;
  readonly byteLength: number;
  /** Body, encodings and overhead. Only the cache changes it. */
  bytes: number;
  private readonly made = new Map<ContentCoding, Encoded>();
  private knownTag: string | null = null;

  constructor(
    body: Body,
    private readonly grow: (entry: CachedBody, bytes: number) => void,
    /** Called when the cache has removed the body. */
    readonly onEvicted: (entry: CachedBody) => void,
  ) {
    // A copy: the application may reuse its buffer once it is sent.
    this.source = typeof body === 'string' ? body : unpooled(body);
    this.byteLength = Buffer.byteLength(body);
    this.bytes = OVERHEAD_BYTES + countMemory(body, this.byteLength);
  }

  /** Computed at its first use: 1 ms at 3 MB. */
  get tag(): string {
    return (this.knownTag ??= makeTag(this.source));
  }

  /** Compares exactly, never by a hash alone: no client may ever get another client's body. */
  matches(body: Body): boolean {
    const { source } = this;
    if (typeof source === 'string' || typeof body === 'string') return source === body;
    return Buffer.compare(source, body) === 0;
  }

  get codings(): ContentCoding[] {
    return [...this.made.keys()];
  }

  /** Encodes once for any number of callers. Rejects or throws when the compressor fails; the next call tries again. */
  encode(coding: ContentCoding, compressor: Compressor, shared: boolean): Encoded {
    const made = this.made.get(coding);
    return made === undefined ? this.encodeAnew(coding, compressor, shared) : made;
  }

  private encodeAnew(coding: ContentCoding, compressor: Compressor, shared: boolean): Encoded {
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

/** Bodies of one length that a new one is compared with: comparing with more could cost more than compressing it. */
const MAX_PER_LENGTH = 8;
/** Slots for tags of bodies that came once; a newer one overwrites an older one. */
const SEEN_SLOTS = 1024;

/** Largest body as a part of the cache, so that one does not evict all others: a tenth; half for `@SharedResponse()`. */
const REPEATED_PART = 1 / 10;
const SHARED_PART = 1 / 2;

/** Bodies and their encodings, bounded by bytes; evicts the least recently used first. */
export class ContentCache {
  private readonly byLength = new Map<number, CachedBody[]>();
  /** The least recently used first. */
  private readonly entries = new Set<CachedBody>();
  private readonly seen = new Uint32Array(SEEN_SLOTS);
  private held = 0;

  constructor(private readonly maxBytes: number) {}

  get bytes(): number {
    return this.held;
  }

  /** Compares exactly. */
  find(body: Body): CachedBody | null {
    const found = this.byLength.get(body.length)?.find((candidate) => candidate.matches(body)) ?? null;
    if (found !== null) this.touch(found);
    return found;
  }

  /** Whether a body with this tag has come before, and remembers that it came now. */
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

  touch(entry: CachedBody): void {
    if (this.entries.delete(entry)) this.entries.add(entry);
  }

  /** Adds a body for {@link find}; null when it is too large. */
  addRepeated(body: Body): CachedBody | null {
    const { length } = body;
    const entry = this.addEntry(body, this.maxBytes * REPEATED_PART, 0, (evicted) => {
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

  /** Adds the body of a shared answer, with `bytes` for its headers and key; null when it is too large. */
  addShared(body: Body, bytes: number, onEvicted: CachedBody['onEvicted']): CachedBody | null {
    return this.addEntry(body, this.maxBytes * SHARED_PART, bytes, onEvicted);
  }

  evict(entry: CachedBody): void {
    if (!this.entries.delete(entry)) return;
    this.held -= entry.bytes;
    entry.onEvicted(entry);
  }

  clear(): void {
    for (const entry of this.entries) this.evict(entry);
  }

  private addEntry(
    body: Body,
    maxBytes: number,
    besideBytes: number,
    onEvicted: CachedBody['onEvicted'],
  ): CachedBody | null {
    // Before the copy.
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
