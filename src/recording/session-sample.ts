import { createHmac, randomBytes, randomInt } from 'node:crypto';

/** Sessions belong to one of so many groups by their hash. */
export const GROUPS = 4_096;
/** Share of the room that is left to kept groups once it is exceeded, so that the next request exceeds it no more. */
const LEFT = 0.8;

/**
 * The sessions that are kept: those whose hash is below a limit, except one that takes half of the room by itself. The limit
 * only falls, so every session that is kept in the end was kept from its first request on.
 */
export class SessionSample {
  private readonly salt = randomBytes(16);
  private readonly counts = new Uint32Array(GROUPS);
  private readonly tooMuch = new Set<number>();
  private limit = GROUPS;
  private kept = 0;

  /** `session`: a hash; null for a request that belongs to no session, which gets a random group. */
  find(session: string | null): { readonly session: string | null; readonly group: number } {
    if (session === null) return { session, group: randomInt(GROUPS) };
    const digest = createHmac('sha256', this.salt).update(session).digest();
    return { session: digest.toString('hex', 2, 10), group: digest.readUInt16BE(0) % GROUPS };
  }

  keeps(group: number): boolean {
    return group < this.limit && !this.tooMuch.has(group);
  }

  /** Counts one more request of a kept group; all groups together have room for `allowed`. */
  add(group: number, allowed: number): void {
    this.counts[group]! += 1;
    this.kept += 1;
    if (this.kept > allowed) this.lower(allowed * LEFT);
  }

  /** No more than `allowed` requests stay. */
  end(allowed: number): void {
    if (this.kept > allowed) this.lower(allowed);
  }

  private lower(to: number): void {
    const before = this.limit;
    this.kept = 0;
    this.limit = 0;
    for (; this.limit < before; this.limit++) {
      const count = this.counts[this.limit]!;
      // A crawler, for example, would leave no room for any other group.
      if (count > to / 2) this.tooMuch.add(this.limit);
      if (this.tooMuch.has(this.limit)) continue;
      if (this.kept + count > to) return;
      this.kept += count;
    }
  }
}
