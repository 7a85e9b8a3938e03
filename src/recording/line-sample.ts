import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { getOrAdd } from '../core/get-or-add.js';

/** Sessions belong to one of so many groups by their hash. */
const GROUPS = 4_096;
/** Share of the room that is left to kept groups once it is exceeded, so that the next request exceeds it no more. */
const LEFT = 0.8;

/** A line at the end of the recording stays in its session, stays alone because its route is rare, or is left out. */
export type LineFate = 'session' | 'alone' | 'out';

/**
 * The lines that are kept: those of sessions whose hash is below a limit, except one that takes half of the room by itself, and
 * `perRoute` of each route. The limit only falls, so every session that is kept in the end was kept from its first request on.
 */
export class LineSample {
  private readonly salt = randomBytes(16);
  private readonly counts = new Uint32Array(GROUPS);
  private readonly tooMuch = new Set<number>();
  private limit = GROUPS;
  private kept = 0;
  /** Group and route of each line in order: a number each, since there may be millions. */
  private readonly lines: number[] = [];
  private readonly routes = new Map<string, { readonly number: number; written: number }>();

  constructor(private readonly perRoute: number) {}

  /** `session`: a hash; null for a request that belongs to no session, which gets a random group. */
  find(session: string | null): { readonly session: string | null; readonly group: number } {
    if (session === null) return { session, group: randomInt(GROUPS) };
    const digest = createHmac('sha256', this.salt).update(session).digest();
    return { session: digest.toString('hex', 2, 10), group: digest.readUInt16BE(0) % GROUPS };
  }

  /** Whether a line is written. */
  takes(group: number, route: string): boolean {
    return this.keeps(group) || (this.routes.get(route)?.written ?? 0) < this.perRoute;
  }

  /** Counts a line that is written. All kept groups together have room for `allowed`. */
  add(group: number, route: string, allowed: number): void {
    const known = getOrAdd(this.routes, route, () => ({ number: this.routes.size, written: 0 }));
    known.written += 1;
    this.lines.push(known.number * GROUPS + group);
    if (!this.keeps(group)) return;
    this.counts[group]! += 1;
    this.kept += 1;
    if (this.kept > allowed) this.lower(allowed * LEFT);
  }

  /** Keeps whole sessions, no more than `allowed` lines, and of each route the lines that it lacks to `perRoute`. */
  end(allowed: number): LineFate[] {
    if (this.kept > allowed) this.lower(allowed);
    const lacking = Array.from(this.routes, () => this.perRoute);
    const inSession = this.lines.map((line) => this.keeps(line % GROUPS));
    this.lines.forEach((line, i) => {
      if (inSession[i]!) lacking[Math.floor(line / GROUPS)]! -= 1;
    });
    return this.lines.map((line, i) => {
      if (inSession[i]!) return 'session';
      return lacking[Math.floor(line / GROUPS)]!-- > 0 ? 'alone' : 'out';
    });
  }

  private keeps(group: number): boolean {
    return group < this.limit && !this.tooMuch.has(group);
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
