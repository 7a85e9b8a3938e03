import type { RequestState } from '../core/request-state.js';

interface Told {
  /** The statement up to its first parameter: drivers may put values in the place of those. */
  readonly head: string;
  readonly state: RequestState | null;
}

/** Statements under way that a query builder has told of: its driver may tell of the same ones, and they are one call. */
export class Statements {
  private readonly told: Told[] = [];

  /** Until what is returned is called, or the driver has told of it. */
  tell(statement: string, state: RequestState | null): () => void {
    const told: Told = { head: statement.split(/\?|\$1/, 1)[0]!, state };
    this.told.push(told);
    return () => this.remove(this.told.indexOf(told));
  }

  /** Whether a builder has told of what its driver tells now; each is found once. */
  take(statement: string, state: RequestState | null): boolean {
    const at = this.told.findIndex(
      (told) => statement.startsWith(told.head) && (told.state === state || told.state === null || state === null),
    );
    this.remove(at);
    return at !== -1;
  }

  private remove(at: number): void {
    if (at !== -1) this.told.splice(at, 1);
  }
}
