import { createHmac, randomBytes, randomInt } from 'node:crypto';

/** Sessions are told apart in so many groups by their hash. */
export const GROUPS = 4_096;
/** Part of what is allowed that is left after too much has come: not to sort again at the next request. */
const LEFT = 0.8;

export interface SampledSession {
  /** A hash; null for a request that belongs to no session. */
  readonly session: string | null;
  readonly group: number;
}

/**
 * Which sessions are kept: those whose hash is below a limit, but for one that takes half of the room by itself. The limit only
 * ever falls, so whoever is kept in the end was kept from the first request on.
 */
export class SessionSample {
  private readonly salt = randomBytes(16);
  private readonly counts = new Uint32Array(GROUPS);
  private readonly tooMuch = new Set<number>();
  private limit = GROUPS;
  private kept = 0;

  of(session: string | null): SampledSession {
    if (session === null) return { session, group: randomInt(GROUPS) };
    const digest = createHmac('sha256', this.salt).update(session).digest();
    return { session: digest.toString('hex', 2, 10), group: digest.readUInt16BE(0) % GROUPS };
  }

  keeps(group: number): boolean {
    return group < this.limit && !this.tooMuch.has(group);
  }

  /** One more request of a group that is kept; there is room for `allowed` of all groups. */
  add(group: number, allowed: number): void {
    this.counts[group]! += 1;
    this.kept += 1;
    if (this.kept > allowed) this.lower(allowed * LEFT);
  }

  /** When nothing comes any more: no more than `allowed` stay. */
  end(allowed: number): void {
    if (this.kept > allowed) this.lower(allowed);
  }

  private lower(to: number): void {
    // A crawler, say: behind it there would be no room for anybody.
    for (let group = 0; group < this.limit; group++) {
      if (this.tooMuch.has(group) || this.counts[group]! <= to / 2) continue;
      this.tooMuch.add(group);
      this.kept -= this.counts[group]!;
    }
    if (this.kept <= to) return;
    const before = this.limit;
    this.kept = 0;
    this.limit = 0;
    while (this.limit < before) {
      const count = this.tooMuch.has(this.limit) ? 0 : this.counts[this.limit]!;
      if (this.kept + count > to) return;
      this.kept += count;
      this.limit += 1;
    }
  }
}
