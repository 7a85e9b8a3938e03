import { CachedBody, type Body } from './cached-body.js';

/** Bodies of one length that are compared with a new one; more would make the comparison dearer than the compression. */
const MAX_PER_LENGTH = 8;

/** Bodies and their encodings, found by exact comparison, bounded by bytes, the least recently used evicted first. */
export class ContentCache {
  private readonly byLength = new Map<number, CachedBody[]>();
  /** In the order of use. */
  private readonly entries = new Set<CachedBody>();
  private held = 0;

  constructor(private readonly maxBytes: number) {}

  /** Bytes held: bodies, all their encodings and the entries' own overhead. */
  get bytes(): number {
    return this.held;
  }

  find(body: Body): CachedBody | null {
    const candidates = this.byLength.get(body.length);
    if (candidates === undefined) return null;
    for (const candidate of candidates) {
      if (!candidate.matches(body)) continue;
      this.touch(candidate);
      return candidate;
    }
    return null;
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
   * Takes a body in; null when there is no room, because it is too large or all that could make room is in use. `forOthers`:
   * somebody else knows where it is, so it is worth its room even where it cannot be found by its content.
   */
  add(body: Body, forOthers = false): CachedBody | null {
    // A quick no, before anything is copied or hashed.
    if (body.length > this.maxBytes) return null;
    const entry = new CachedBody(body, (grown, bytes) => this.charge(grown, bytes));
    if (entry.bytes > this.maxBytes || !this.makeRoom(entry.bytes)) return null;
    const siblings = this.byLength.get(body.length);
    if (siblings === undefined) this.byLength.set(body.length, [entry]);
    else if (siblings.length < MAX_PER_LENGTH || this.evictOneOf(siblings)) {
      // Evicting the last sibling would have dropped the list.
      siblings.push(entry);
      this.byLength.set(body.length, siblings);
    } else if (!forOthers) return null;
    this.entries.add(entry);
    this.held += entry.bytes;
    return entry;
  }

  /** Charges an entry with more (or fewer) bytes. */
  charge(entry: CachedBody, bytes: number): void {
    entry.bytes += bytes;
    if (!this.entries.has(entry)) return;
    this.held += bytes;
    if (this.held > this.maxBytes) this.makeRoom(0);
  }

  evict(entry: CachedBody): void {
    if (!this.entries.delete(entry)) return;
    this.held -= entry.bytes;
    const length = entry.source.length;
    const siblings = this.byLength.get(length);
    const index = siblings?.indexOf(entry) ?? -1;
    if (index >= 0) siblings!.splice(index, 1);
    if (siblings?.length === 0) this.byLength.delete(length);
    entry.evict();
  }

  clear(): void {
    for (const entry of this.entries) this.evict(entry);
  }

  private evictOneOf(siblings: readonly CachedBody[]): boolean {
    // Siblings stand in the order in which they came; the one that was never used again goes first.
    const victim = siblings.filter((entry) => !entry.pinned && !entry.held).sort((a, b) => a.hits - b.hits)[0];
    if (victim === undefined) return false;
    this.evict(victim);
    return true;
  }

  private makeRoom(bytes: number): boolean {
    for (const entry of this.entries) {
      if (this.held + bytes <= this.maxBytes) return true;
      if (!entry.pinned) this.evict(entry);
    }
    return this.held + bytes <= this.maxBytes;
  }
}
