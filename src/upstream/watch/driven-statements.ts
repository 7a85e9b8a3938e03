import { LinkedList, type Linked } from '../../core/linked-list.js';
import type { RequestState } from '../../request/request-state.js';

interface Statement extends Linked<Statement> {
  /** The first word of its target. */
  readonly client: string;
  /** Up to the first parameter: a driver may have put the values in. */
  readonly beginning: string;
  readonly caller: RequestState | null;
}

const PARAMETER = /\?|\$\d|:\w/;

/** Statements under way of clients that use a driver, which may be heard as well: one call, told twice. */
export class DrivenStatements {
  private readonly open = new LinkedList<Statement>();

  /** What it returns ends the statement. */
  begin(client: string, statement: string, caller: RequestState | null): () => void {
    const [beginning = ''] = statement.split(PARAMETER, 1);
    const one: Statement = { client, beginning, caller, previous: null, next: null };
    this.open.add(one);
    return () => void this.open.delete(one);
  }

  /** Whether a driver tells what has been told for this caller; each is told twice at most. */
  take(client: string, statement: string, caller: RequestState | null): boolean {
    for (const one of this.open.toArray()) {
      const sameCaller = one.caller === null || caller === null || one.caller === caller;
      if (one.client !== client || !sameCaller || !statement.startsWith(one.beginning)) continue;
      this.open.delete(one);
      return true;
    }
    return false;
  }
}
