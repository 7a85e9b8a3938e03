import { entryOf } from '../../core/entry-of.js';
import type { UserUse } from '../../core/snapshot.js';
import type { Verdict } from '../../core/verdict.js';
import type { HistorySource, Identity, ReadBucket } from '../reader.js';
import { bucketOf, DAY_MS, HOUR_MS, WEEK_MS, WINDOW_MS } from '../rows/tiers.js';
import { inTurns, Turns } from '../../core/turns.js';
import { VerdictEngine } from './engine.js';
import { judgedRoutes, JudgedWindow } from './judged-window.js';

export interface VerdictParts {
  readonly own: Identity;
  /** Other processes write to the same store. */
  readonly shared: boolean;
  readonly usersOf: (route: string) => readonly UserUse[];
  readonly tell: (verdict: Verdict) => void;
  /** Judging has failed; the next window is judged again. */
  readonly failed: (error: unknown) => void;
}

/** Other pods write once a minute. */
const OTHERS_MS = 90_000;
/** A window is judged at the first full minute after that. */
const JUDGED_MS = 120_000;
const WEEKS = 5;

/** Gives the engine its windows: first those of the past, in silence, and then each that has ended. */
export class VerdictKeeper {
  private engine: VerdictEngine;
  /** Windows that begin before it are judged. */
  private judgedUntil = 0;
  /** Windows before it are of the past. */
  private begunAt = 0;
  /** Whether the engine knows what the store remembers. */
  private isRecalled = false;
  /** What was told before that: it is judged again then. */
  private readonly told = new Set<string>();
  private busy: Promise<void> | null = null;

  constructor(private readonly parts: VerdictParts) {
    this.engine = new VerdictEngine(parts.usersOf);
  }

  get verdicts(): readonly Verdict[] {
    return this.engine.verdicts;
  }

  /** What the store remembers. While it is away, each window that is judged tries again. */
  recall(source: HistorySource, nowMs: number): Promise<void> {
    // What nobody has judged yet is judged here as well: those who wrote it may have ended.
    this.begunAt = bucketOf(nowMs - (this.parts.shared ? JUDGED_MS : 0), WINDOW_MS);
    return this.inTurn(() => this.recallUntil(source, this.begunAt));
  }

  /** Five weeks of hours, and the last two days in windows. */
  private async recallUntil(source: HistorySource, until: number): Promise<void> {
    const engine = new VerdictEngine(this.parts.usersOf);
    const windowsFrom = until - 2 * DAY_MS;
    const hours = { from: until - WEEKS * WEEK_MS, to: windowsFrom };
    const hasHours = await source.read('1h', hours, ({ at, window }) => {
      engine.learnHour(at, judgedRoutes(window));
    });
    const { windows, isComplete } = await windowsOf(source, windowsFrom, until, true);
    const turns = new Turns();
    for (const window of windows) await inTurns(engine.judge(window), turns);
    this.isRecalled = hasHours && isComplete;
    // Less than everything is better than nothing, and no better than what is known by now.
    if (!this.isRecalled && this.judgedUntil > 0) return;
    this.engine = engine;
    this.judgedUntil = until;
  }

  /** Judges what has ended. */
  judge(source: HistorySource, nowMs: number): Promise<void> {
    return this.inTurn(async () => {
      const until = bucketOf(nowMs - (this.parts.shared ? OTHERS_MS : 0), WINDOW_MS);
      // A clock that was far ahead, and was set right: what it judged there is forgotten.
      if (this.judgedUntil - until > HOUR_MS) {
        [this.judgedUntil, this.begunAt] = [0, until - WINDOW_MS];
        await this.recallUntil(source, this.begunAt);
      }
      if (until <= this.judgedUntil) return;
      if (!this.isRecalled) await this.recallUntil(source, Math.max(this.begunAt, until - DAY_MS));
      // A clock that was set far ahead, or a process that was stopped for long: only the last day is judged.
      const from = Math.max(this.judgedUntil, until - DAY_MS);
      const { windows, writing } = await windowsOf(source, from, until, this.parts.shared);
      const turns = new Turns();
      for (const window of windows) {
        const changed = await inTurns(this.engine.judge(window), turns);
        if (this.speaks(window, writing)) changed.forEach(this.tell);
      }
      this.judgedUntil = until;
    });
  }

  /** Of several processes that come to the same verdict, one tells it: one that still writes, if possible one of the window's. */
  private speaks({ instances }: JudgedWindow, writing: readonly string[]): boolean {
    const { instance } = this.parts.own;
    const [speaker = instance] = [...writing.filter((one) => instances.has(one)), ...writing];
    return speaker === instance;
  }

  private readonly tell = (verdict: Verdict): void => {
    const key = `${verdict.id} ${verdict.state}`;
    if (this.told.has(key)) return;
    if (!this.isRecalled) this.told.add(key);
    this.parts.tell(verdict);
  };

  /** One after the other: what is asked for meanwhile is left to the next minute. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    return (this.busy ??= work()
      .catch(this.parts.failed)
      .finally(() => (this.busy = null)));
  }
}

/**
 * The windows of all processes in the range, oldest first, and which instances write to the window after them, in order.
 * `isComplete`: the store could be read.
 */
async function windowsOf(source: HistorySource, from: number, to: number, withStore: boolean) {
  const windows = new Map<number, JudgedWindow>();
  const writing = new Set<string>();
  const take = (bucket: ReadBucket): void => {
    const { at, instance } = bucket;
    if (at >= to) writing.add(instance);
    else entryOf(windows, at, () => new JudgedWindow(at)).add(bucket);
  };
  const isComplete = await source.read('5m', { from, to: to + WINDOW_MS }, take, withStore);
  const sorted = [...windows.values()].toSorted((a, b) => a.at - b.at);
  return { windows: sorted, writing: [...writing].toSorted(), isComplete };
}
