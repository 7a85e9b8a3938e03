import type { OncePerCause } from '../core/reporter.js';
import type { Entry } from './entry.js';
import type { Level2, Level2Answer } from './level2.js';
import { atEndOfTurn } from './flight.js';
import { fromText, toText } from './value.js';

/** Items that are read in one turn of the event loop. */
interface Turn {
  readonly reads: Promise<unknown>[];
  readonly end: Promise<unknown>;
}

/** Values of one method in the second level. Never throws: a useless value is reported, and the source is called. */
export class MethodLevel2 {
  private turn: Turn | null = null;

  constructor(
    private readonly level2: Level2,
    private readonly method: string,
    private readonly isBatch: boolean,
    private readonly report: OncePerCause,
  ) {}

  /** Ends the reads of one turn together for a batch: one call then loads the items that were not found. */
  async read(key: string): Promise<Level2Answer | null> {
    const answer = this.level2.read(this.method, key);
    if (this.isBatch) {
      this.turn ??= this.newTurn();
      this.turn.reads.push(answer);
      await this.turn.end;
    }
    return answer;
  }

  private newTurn(): Turn {
    const reads: Promise<unknown>[] = [];
    const end = new Promise((resolve) => {
      atEndOfTurn(() => {
        this.turn = null;
        resolve(Promise.all(reads));
      });
    });
    return { reads, end };
  }

  parseValue(text: string): { readonly value: unknown } | null {
    try {
      return { value: fromText(text) };
    } catch (error) {
      const cause = `level 2 of "${this.method}"`;
      this.report.report(
        cause,
        `The level that all pods share returned no JSON for "${this.method}": ${String(error)}`,
      );
      return null;
    }
  }

  /** `atMs`: the time of the level's clock when the load began. */
  write({ key, value, startedMs, loadedAtMs }: Entry, atMs: number, keepMs: number): void {
    if (keepMs <= 0) return;
    const text = toText(value);
    if (text === null) {
      const cause = `"${this.method}" stays in level 1`;
      const advice = 'Return plain data, or set `level2: false`.';
      this.report.report(cause, `${cause}: JSON would lose something of its value. ${advice}`);
      return;
    }
    this.level2.write(this.method, key, text, { loadedAtMs: atMs - (startedMs - loadedAtMs), keepMs });
  }
}
