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
 * Which sessions are kept: those whose hash is below a limit. It only ever falls, so whoever is kept in the end was kept from the
 * first request on.
 */
export class SessionSample {
  private readonly salt = randomBytes(16);
  private readonly counts = new Uint32Array(GROUPS);
  private limit = GROUPS;
  private kept = 0;

  of(session: string | null): SampledSession {
    if (session === null) return { session, group: randomInt(GROUPS) };
    const digest = createHmac('sha256', this.salt).update(session).digest();
    return { session: digest.toString('hex', 2, 10), group: digest.readUInt16BE(0) % GROUPS };
  }

  keeps(group: number): boolean {
    return group < this.limit;
  }

  /** One more request of a group that is kept; `allowed` of all groups may have come by now. */
  add(group: number, allowed: number): void {
    this.counts[group]! += 1;
    this.kept += 1;
    if (this.kept > allowed) this.lower(allowed * LEFT);
  }

  private lower(to: number): void {
    const before = this.limit;
    this.kept = 0;
    this.limit = 0;
    while (this.limit < before && this.kept + this.counts[this.limit]! <= to) {
      this.kept += this.counts[this.limit]!;
      this.limit += 1;
    }
  }
}
