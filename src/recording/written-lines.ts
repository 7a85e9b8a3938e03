import { GROUPS } from './session-sample.js';

/** A line at the end of the recording stays in its session, stays alone because its route is rare, or is left out. */
export type LineFate = 'session' | 'alone' | 'out';

/** The lines of a recording's file, in order: whose they are and of which route. A number each, since there may be millions. */
export class WrittenLines {
  private readonly lines: number[] = [];
  private readonly routes = new Map<string, { readonly number: number; written: number }>();

  add(group: number, route: string): void {
    let known = this.routes.get(route);
    if (known === undefined) this.routes.set(route, (known = { number: this.routes.size, written: 0 }));
    known.written += 1;
    this.lines.push(known.number * GROUPS + group);
  }

  /** Lines of a route. */
  of(route: string): number {
    return this.routes.get(route)?.written ?? 0;
  }

  /** Leaves whole sessions, and of each route what it is short of. */
  fates(keeps: (group: number) => boolean, perRoute: number): LineFate[] {
    const short = Array.from(this.routes, () => perRoute);
    const inSession = this.lines.map((line) => keeps(line % GROUPS));
    this.lines.forEach((line, i) => {
      if (inSession[i]!) short[Math.floor(line / GROUPS)]! -= 1;
    });
    return this.lines.map((line, i) => {
      if (inSession[i]!) return 'session';
      return short[Math.floor(line / GROUPS)]!-- > 0 ? 'alone' : 'out';
    });
  }
}
