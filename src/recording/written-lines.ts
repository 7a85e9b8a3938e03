import { getOrAdd } from '../core/get-or-add.js';
import { GROUPS } from './session-sample.js';

/** A line at the end of the recording stays in its session, stays alone because its route is rare, or is left out. */
export type LineFate = 'session' | 'alone' | 'out';

/** The lines of a recording's file in order, with group and route: a number each, since there may be millions. */
export class WrittenLines {
  private readonly lines: number[] = [];
  private readonly routes = new Map<string, { readonly number: number; written: number }>();

  add(group: number, route: string): void {
    const known = getOrAdd(this.routes, route, () => ({ number: this.routes.size, written: 0 }));
    known.written += 1;
    this.lines.push(known.number * GROUPS + group);
  }

  count(route: string): number {
    return this.routes.get(route)?.written ?? 0;
  }

  /** Keeps whole sessions, and of each route the lines that it lacks to `perRoute`. */
  fates(keeps: (group: number) => boolean, perRoute: number): LineFate[] {
    const lacking = Array.from(this.routes, () => perRoute);
    const inSession = this.lines.map((line) => keeps(line % GROUPS));
    this.lines.forEach((line, i) => {
      if (inSession[i]!) lacking[Math.floor(line / GROUPS)]! -= 1;
    });
    return this.lines.map((line, i) => {
      if (inSession[i]!) return 'session';
      return lacking[Math.floor(line / GROUPS)]!-- > 0 ? 'alone' : 'out';
    });
  }
}
