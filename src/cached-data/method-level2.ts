import type { OncePerCause } from '../core/reporter.js';
import type { Entry } from './entry.js';
import type { Level2, Level2Answer, Level2Value } from './level2.js';
import { atEndOfTurn } from './turn.js';
import { fromText, toText } from './value.js';

/** Items that are asked for in one turn of the event loop. */
interface Turn {
  readonly reads: Promise<unknown>[];
  readonly end: Promise<void>;
}

/** What one method has in the second level. Never throws: what fails is reported, and the source is asked. */
export class MethodLevel2 {
  private turn: Turn | null = null;

  constructor(
    private readonly level2: Level2,
    private readonly method: string,
    private readonly isBatch: boolean,
    private readonly report: OncePerCause,
  ) {}

  /** The reads of one turn end together for a batch: what none of them finds is then asked for in one call. */
  async read(key: string): Promise<Level2Answer | null> {
    const answer = this.readOne(key);
    if (this.isBatch) {
      this.turn ??= this.newTurn();
      this.turn.reads.push(answer);
      await this.turn.end;
    }
    return answer;
  }

  private newTurn(): Turn {
    const reads: Promise<unknown>[] = [];
    const end = new Promise<void>((resolve) => {
      atEndOfTurn(() => {
        this.turn = null;
        void Promise.all(reads).then(() => resolve());
      });
    });
    return { reads, end };
  }

  private async readOne(key: string): Promise<Level2Answer | null> {
    try {
      return await this.level2.read({ method: this.method, key });
    } catch (error) {
      this.report.report('reading level 2', `Level 2 failed: ${String(error)}`);
      return null;
    }
  }

  valueOf({ text }: Level2Value): { readonly value: unknown } | null {
    try {
      return { value: fromText(text) };
    } catch (error) {
      const cause = `level 2 of "${this.method}"`;
      this.report.report(cause, `Level 2 holds no JSON for "${this.method}": ${String(error)}`);
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
    const { method, level2 } = this;
    level2.write({ method, key }, text, { loadedAtMs: atMs - (startedMs - loadedAtMs), keepMs });
  }
}
