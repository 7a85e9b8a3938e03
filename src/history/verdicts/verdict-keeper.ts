import type { UserUse } from '../../core/snapshot.js';
import type { Verdict } from '../../core/verdict.js';
import type { HistorySource, Identity, ReadBucket } from '../reader.js';
import { bucketOf, DAY_MS, WEEK_MS, WINDOW_MS } from '../rows/tiers.js';
import { ProcessSums, RouteSums } from '../rows/window.js';
import { OTHER_ROUTES, type EncodedWindow } from '../rows/window-codec.js';
import { inTurns, Turns } from '../../core/turns.js';
import { VerdictEngine } from './engine.js';
import type { JudgedWindow } from './judged-window.js';

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
  private busy: Promise<void> = Promise.resolve();
  private isBusy = false;

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
      engine.learnHour(at, new Map(routesOf(window)));
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

  /** Judges what has ended. While that is under way, nothing: the next minute does it. */
  judge(source: HistorySource, nowMs: number): Promise<void> {
    if (this.isBusy) return this.busy;
    return this.inTurn(async () => {
      const until = bucketOf(nowMs - (this.parts.shared ? OTHERS_MS : 0), WINDOW_MS);
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
  private speaks({ instances }: GatheredWindow, writing: readonly string[]): boolean {
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

  private inTurn(work: () => Promise<void>): Promise<void> {
    this.isBusy = true;
    const judged = async (): Promise<void> => {
      try {
        await work();
      } catch (error) {
        this.parts.failed(error);
      } finally {
        this.isBusy = false;
      }
    };
    return (this.busy = this.busy.then(judged));
  }
}

interface GatheredWindow extends JudgedWindow {
  readonly routes: Map<string, RouteSums>;
  readonly pods: Map<string, Map<string, RouteSums>>;
  readonly releases: Set<string>;
  readonly instances: Set<string>;
}

interface Gathered {
  /** Of all processes in the range, oldest first. */
  readonly windows: readonly GatheredWindow[];
  /** Instances that write to the window after them, in order. */
  readonly writing: readonly string[];
  /** False: the store could not be read. */
  readonly isComplete: boolean;
}

async function windowsOf(source: HistorySource, from: number, to: number, withStore: boolean): Promise<Gathered> {
  const windows = new Map<number, GatheredWindow>();
  const writing = new Set<string>();
  const take = ({ at, pod, instance, release, window: bucket }: ReadBucket): void => {
    if (at >= to) {
      writing.add(instance);
      return;
    }
    let window = windows.get(at);
    if (window === undefined) {
      const empty = { routes: new Map(), pods: new Map(), releases: new Set<string>(), instances: new Set<string>() };
      windows.set(at, (window = { at, process: new ProcessSums(), ...empty }));
    }
    window.process.add(bucket.process);
    window.instances.add(instance);
    if (release !== '') window.releases.add(release);
    let ofPod = window.pods.get(pod);
    if (ofPod === undefined) window.pods.set(pod, (ofPod = new Map()));
    for (const [name, sums] of routesOf(bucket)) {
      addTo(window.routes, name, sums);
      addTo(ofPod, name, sums);
    }
  };
  const isComplete = await source.read('5m', { from, to: to + WINDOW_MS }, take, withStore);
  const sorted = [...windows.values()].toSorted((a, b) => a.at - b.at);
  return { windows: sorted, writing: [...writing].toSorted(), isComplete };
}

/** What can be judged: the small ones together are others in every bucket. */
function* routesOf(window: EncodedWindow): Generator<[route: string, sums: RouteSums]> {
  for (const name of window.routeNames) if (name !== OTHER_ROUTES) yield [name, window.sums(name)!];
}

function addTo(routes: Map<string, RouteSums>, name: string, sums: RouteSums): void {
  let known = routes.get(name);
  if (known === undefined) routes.set(name, (known = new RouteSums()));
  known.add(sums);
}
