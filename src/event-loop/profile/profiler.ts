import type { MonotonicClock } from '../../core/clock.js';
import type { Profile, Profiler } from '../../ports/loop-profile.js';
import { inRootContext } from '../../core/root-context.js';
import type { Frame } from '../sample.js';
import type { Locate, Position } from '../source-lines.js';
import { makeCpuProfile } from './cpu-profile.js';
import type { LoopProfile } from './loop-profile.js';
import { labelRoute, type SampledWindow } from './sampled-window.js';
import { keyOf, StackNode, StackTree } from './stack-tree.js';

/** While somebody waits for a profile. */
const SAMPLES_PER_SECOND = 100;
/** Stack nodes that one profile keeps. */
const MAX_NODES = 5_000;

/** Makes profiles of what was sampled so far, or of the next seconds at a higher rate. */
export class LoopProfiler implements Profiler {
  /** Ends the profiles under way. */
  private readonly running = new Set<() => void>();

  constructor(
    private readonly loop: LoopProfile,
    /** Samples a second from now on; null: the usual ones. */
    private readonly setRate: (perSecond: number | null) => void,
    private readonly locate: (positions: readonly Position[]) => Promise<Locate>,
    private readonly nowMs: MonotonicClock,
  ) {}

  async profile({ route, seconds }: Parameters<Profiler['profile']>[0]): Promise<Profile> {
    const windows = seconds === null ? this.loop.recent() : [await this.collect(seconds)];
    const wallMs = this.nowMs() - windows[0]!.sinceMs;
    const tree = new StackTree(MAX_NODES);
    for (const { stacks } of windows) tree.addTree(stacks);
    const isWanted = (label: string): boolean => route === null || label === route;
    const trees = tree.root.children.filter(({ name }) => isWanted(name));
    const functions = listFunctions(trees);
    const locate = await this.locate([...functions.values()]);
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
      toCpuProfile: () => makeCpuProfile(trees, windows[0]!.sinceMs, (frame) => locate(functions.get(keyOf(frame))!)),
    };
  }

  /** The application closes: profiles under way end with what they have. */
  close(): void {
    for (const end of this.running) end();
  }

  private async collect(seconds: number): Promise<SampledWindow> {
    const window = this.loop.collect(MAX_NODES);
    this.setRate(SAMPLES_PER_SECOND);
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.running.delete(end);
        resolve();
      };
      const timer = inRootContext(() => setTimeout(end, 1_000 * seconds).unref());
      this.running.add(end);
    });
    if (this.running.size === 0) this.setRate(null);
    this.loop.stopCollecting(window);
    return window;
  }
}

/** One place a function, whichever of its lines ran below which caller: viewers add up by place. */
function listFunctions(trees: readonly StackNode[]): Map<string, Frame> {
  const functions = new Map<string, Frame>();
  const collect = ({ frame, children }: StackNode): void => {
    if (frame !== null) {
      const key = keyOf(frame);
      const known = functions.get(key);
      if (known === undefined || frame.line < known.line) functions.set(key, frame);
    }
    children.forEach(collect);
  };
  trees.forEach(collect);
  return functions;
}

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
