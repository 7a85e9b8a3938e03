import type { MonotonicClock } from '../../core/clock.js';
import type { Profile, Profiler } from '../../ports/loop-profile.js';
import { inRootContext } from '../../core/root-context.js';
import type { Frame, SampleRate } from '../sample.js';
import { SourceLines, type Position } from '../source-lines.js';
import { makeCpuProfile, type Locate } from './cpu-profile.js';
import type { LoopProfile } from './loop-profile.js';
import { labelRoute, type SampledWindow } from './sampled-window.js';
import { keyOf, StackNode, StackTree } from './stack-tree.js';

/** While somebody waits for a profile. */
const SAMPLES_PER_SECOND = 100;
/** Stack nodes that one profile keeps. */
const MAX_NODES = 5_000;
/** The watchdog's thread reads no beat while it looks up positions. */
const LOCATE_CHUNK = 50;
/** To read the map of a bundle takes the thread some time the first time. */
const LOCATE_MS = 2_000;

/** Finds the places of the compiled code in the sources. */
export interface FrameLocator {
  /** From the maps, in the order of the positions; null: not in time. */
  locate(positions: readonly Position[], deadlineMs: number): Promise<readonly (string | null)[] | null>;
  /** Without reading a map. */
  readonly compiled: (position: Position) => string | null;
}

/** Makes profiles of what was sampled so far, or of the next seconds at a higher rate. */
export class LoopProfiler implements Profiler {
  /** Ends the profiles under way. */
  private readonly running = new Set<() => void>();

  constructor(
    private readonly loop: LoopProfile,
    private readonly rate: SampleRate,
    private readonly locator: FrameLocator,
    private readonly nowMs: MonotonicClock,
  ) {}

  async profile({ route, seconds }: Parameters<Profiler['profile']>[0]): Promise<Profile> {
    const windows = seconds === null ? this.loop.recent() : [await this.collect(seconds)];
    const wallMs = this.nowMs() - windows[0]!.sinceMs;
    const tree = new StackTree(MAX_NODES);
    for (const { stacks } of windows) tree.addTree(stacks);
    const isWanted = (label: string): boolean => route === null || label === route;
    const trees = tree.root.children.filter(({ name }) => isWanted(name));
    const locate = await this.locateFunctions(trees);
    const [samples, idle] = [sumOf(windows, (window) => window.samples), sumOf(windows, (window) => window.idle)];
    const { routes, busyMs } = countByRoute(windows, wallMs);
    // Time without a request in flight is not sampled: it counts as idle.
    const idling = new StackNode('(idle)', null);
    idling.selfMs = Math.max(0, wallMs - busyMs);
    idling.samples = idling.selfMs === 0 ? 0 : Math.max(1, idle);
    if (route === null) trees.push(idling);
    return {
      samples,
      idle,
      routes: routes.filter((row) => isWanted(row.route)),
      toCpuProfile: () => makeCpuProfile(trees, windows[0]!.sinceMs, locate),
    };
  }

  /** The application closes: profiles under way end with what they have. */
  close(): void {
    for (const end of this.running) end();
  }

  private async collect(seconds: number): Promise<SampledWindow> {
    const window = this.loop.collect(MAX_NODES);
    const restoreRate = this.rate.ask(SAMPLES_PER_SECOND);
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.running.delete(end);
        resolve();
      };
      const timer = inRootContext(() => setTimeout(end, 1_000 * seconds).unref());
      this.running.add(end);
    });
    restoreRate();
    this.loop.stopCollecting(window);
    return window;
  }

  /** Looks up the source of all functions, as far as the watchdog answers. */
  private async locateFunctions(trees: readonly StackNode[]): Promise<Locate> {
    const functions = new Map<string, Frame>();
    const collect = ({ frame, children }: StackNode): void => {
      if (frame !== null) {
        // One place a function, whichever line ran below which caller: viewers add up by place.
        const key = keyOf(frame);
        const known = functions.get(key);
        if (known === undefined || frame.line < known.line) functions.set(key, frame);
      }
      children.forEach(collect);
    };
    trees.forEach(collect);
    const mapped = [...functions].filter(([, frame]) => mayHaveMap(frame));
    const found = new Map<string, string | null>();
    for (let from = 0; from < mapped.length; from += LOCATE_CHUNK) {
      const chunk = mapped.slice(from, from + LOCATE_CHUNK);
      const positions = chunk.map(([, { file, line, column }]) => ({ file, line, column }));
      const places = await this.locator.locate(positions, LOCATE_MS);
      if (places === null) break;
      chunk.forEach(([key], i) => found.set(key, places[i] ?? null));
    }
    return (frame) => {
      const key = keyOf(frame);
      return found.get(key) ?? this.locator.compiled(functions.get(key) ?? frame);
    };
  }
}

/** TypeScript that a loader compiles has its source map on the main thread alone. */
const mayHaveMap = ({ file }: Frame): boolean =>
  file !== null && !file.startsWith('node:') && !SourceLines.isTypeScript(file);

function countByRoute(windows: readonly SampledWindow[], wallMs: number) {
  const byLabel = new Map<string, { samples: number; ms: number }>();
  let busyMs = 0;
  for (const { routes } of windows) {
    for (const [route, { samples, ms }] of routes) {
      const label = labelRoute(route);
      const before = byLabel.get(label) ?? { samples: 0, ms: 0 };
      byLabel.set(label, { samples: before.samples + samples, ms: before.ms + ms });
      busyMs += ms;
    }
  }
  const rows = [...byLabel].toSorted(([, a], [, b]) => b.ms - a.ms);
  const shareOf = (ms: number): number => (wallMs <= 0 ? 0 : Math.min(1, ms / wallMs));
  return { busyMs, routes: rows.map(([route, { samples, ms }]) => ({ route, samples, share: shareOf(ms) })) };
}

const sumOf = (windows: readonly SampledWindow[], figure: (window: SampledWindow) => number): number =>
  windows.reduce((sum, window) => sum + figure(window), 0);
