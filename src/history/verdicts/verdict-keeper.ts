import { getOrAdd } from '../../core/get-or-add.js';
import type { UserUse } from '../../core/snapshot.js';
import { inTurns, Turns } from '../../core/turns.js';
import type { Verdict } from '../../core/verdict.js';
import type { FleetVerdicts, FleetSource, TakeBucket } from '../history-store.js';
import type { TimeRange } from '../../ports/history.js';
import { openWindow } from '../rows/encoded-window.js';
import { startBucket, DAY_MS, HOUR_MS, WEEK_MS, WINDOW_MS } from '../rows/tiers.js';
import { VerdictEngine } from './engine.js';
import { JudgedWindow, readJudged } from './judged-window.js';
import { RECENT } from './route-track.js';

export interface VerdictParts {
  readonly listUsers: (route: string) => readonly UserUse[];
  readonly report: (verdict: Verdict) => void;
  /** Judging has failed; the next window is judged again. */
  readonly failed: (error: unknown) => void;
}

/** After so long all pods have written a window: each writes once a minute. */
const ALL_WRITTEN_MS = 90_000;
/** After so long the leader has judged a window: at the first full minute after all have written it. */
const JUDGED_MS = 120_000;
const WEEKS = 5;
/** Windows are read in parts, so that memory holds few at a time, and a slow store answers each read in time. */
const PART_MS = 6 * HOUR_MS;

/**
 * Passes windows to the engine: first those of the past, without reports, then each that has ended. In a fleet only the leader judges;
 * the other processes show its verdicts.
 */
export class VerdictKeeper {
  private engine: VerdictEngine;
  /** Windows that begin before it are judged. */
  private judgedUntil = 0;
  /** Windows that begin before it are judged without reports. */
  private reportsFrom = 0;
  /** The leader's verdicts; null where this process judges. */
  private followed: readonly Verdict[] | null = null;
  /** The fleet has not stored them yet. */
  private unreported: Verdict[] = [];
  private leads = false;
  /** Whether a shared store could be read when it was last tried. */
  private canRead = true;
  private busy: Promise<void> | null = null;

  constructor(private readonly parts: VerdictParts) {
    this.engine = new VerdictEngine(parts.listUsers);
  }

  get verdicts(): readonly Verdict[] {
    return this.followed ?? this.engine.verdicts;
  }

  /** Learns the past from the store. */
  recall(source: FleetSource, nowMs: number): Promise<void> {
    // The last windows may not be judged yet, and their processes may have ended: this one judges and reports them.
    this.reportsFrom = startBucket(nowMs - (source.shared ? JUDGED_MS : 0), WINDOW_MS);
    if (source.shared) return this.judge(source, nowMs);
    return this.runUnlessBusy(async () => void (await this.recallUntil(source, this.reportsFrom)));
  }

  judge(source: FleetSource, nowMs: number): Promise<void> {
    return this.runUnlessBusy(async () => {
      if (source.shared) return this.judgeFleet(source, nowMs);
      for (const verdict of await this.judgeUntil(source, startBucket(nowMs, WINDOW_MS))) this.parts.report(verdict);
    });
  }

  /** Verdicts are stored before they are reported: the next leader does not report them again. */
  private async judgeFleet(source: FleetSource, nowMs: number): Promise<void> {
    const answer = await source.fleet((fleet) => fleet.lead(this.canRead));
    if (answer === null) return;
    // A leader that cannot read the store tries again until its lease ends. Without a lease it may apply for the next one.
    this.canRead ||= !answer.leads;
    this.leads = answer.leads && (this.leads || (await this.takeOver(source, nowMs, answer.kept)));
    if (!this.leads) {
      [this.followed, this.unreported] = [answer.kept?.verdicts ?? [], []];
      return;
    }
    const before = this.judgedUntil;
    this.unreported.push(...(await this.judgeUntil(source, startBucket(nowMs - ALL_WRITTEN_MS, WINDOW_MS))));
    if (this.judgedUntil === before && this.unreported.length === 0) return;
    const { judgedUntil, verdicts } = this;
    const isKept = await source.fleet((fleet) => fleet.keepVerdicts({ judgedUntil, verdicts }));
    if (isKept === false) this.leads = false;
    if (isKept === true) for (const verdict of this.unreported.splice(0)) this.parts.report(verdict);
  }

  /** Judges without reports what the previous leader has judged, and reports what it has not. */
  private async takeOver(source: FleetSource, nowMs: number, kept: FleetVerdicts | null): Promise<boolean> {
    const latest = startBucket(nowMs - JUDGED_MS, WINDOW_MS);
    this.reportsFrom = Math.max(latest - DAY_MS, Math.min(latest, kept?.judgedUntil ?? this.reportsFrom));
    this.canRead = await this.recallUntil(source, this.reportsFrom);
    if (!this.canRead) return false;
    this.unreported = this.engine.adopt(kept?.verdicts ?? [], this.reportsFrom);
    this.followed = null;
    return true;
  }

  /** Learns hours of five weeks, and judges windows of the last two days. False when a shared store could not be read. */
  private async recallUntil(source: FleetSource, until: number): Promise<boolean> {
    let engine = new VerdictEngine(this.parts.listUsers);
    const windowsFrom = until - 2 * DAY_MS;
    let isComplete = await source.read('1h', { from: until - WEEKS * WEEK_MS, to: windowsFrom }, () => {
      engine = new VerdictEngine(this.parts.listUsers);
      return ({ at, window }) => engine.learnHour(at, readJudged(window));
    });
    const turns = new Turns();
    for (let from = windowsFrom; from < until; from += PART_MS) {
      // A store that has failed once is not read again: each read could take its whole deadline.
      const { windows, isRead } = await readWindows(source, { from, to: Math.min(until, from + PART_MS) }, isComplete);
      for (const window of windows) await inTurns(engine.judge(window), turns);
      isComplete &&= isRead;
    }
    if (source.shared && !isComplete) return false;
    this.engine = engine;
    this.judgedUntil = until;
    return true;
  }

  private async judgeUntil(source: FleetSource, until: number): Promise<Verdict[]> {
    if (until <= this.judgedUntil) return [];
    // At most the last day, when the clock was set far ahead, or the process was stopped for long.
    const from = Math.max(this.judgedUntil, until - DAY_MS);
    const isShared = source.shared;
    const { windows, isRead } = await readWindows(source, { from, to: until }, isShared);
    // One pod's memory cannot stand for the fleet: the next minute judges the window.
    this.canRead = isRead || !isShared;
    if (!this.canRead) return [];
    const turns = new Turns();
    const changed: Verdict[] = [];
    for (const window of windows) changed.push(...(await inTurns(this.engine.judge(window), turns)));
    this.judgedUntil = until;
    return changed;
  }

  /** While work is under way, a call waits for that instead: the next minute does its own. */
  private runUnlessBusy(work: () => Promise<void>): Promise<void> {
    return (this.busy ??= work()
      .catch(this.parts.failed)
      .finally(() => (this.busy = null)));
  }
}

/** The windows of all processes in the range, oldest first. `isRead`: the store could be read. */
async function readWindows(source: FleetSource, range: TimeRange, withStore: boolean) {
  const found = new Map<number, JudgedWindow>();
  const begin = (): TakeBucket => {
    found.clear();
    return (bucket) => getOrAdd(found, bucket.at, () => new JudgedWindow(bucket.at)).take(bucket);
  };
  const isRead = await source.read('5m', range, begin, withStore);
  const windows = [...found.values()].toSorted((a, b) => a.at - b.at);
  for (const window of source.shared ? windows.slice(-RECENT) : []) {
    const rows = await source.fleet((fleet) => fleet.windows(window.at));
    for (const { pod, data } of rows ?? []) {
      const one = openWindow(data);
      if (one !== null) window.addPod(pod, one);
    }
  }
  return { windows, isRead };
}
