import type { MonotonicClock } from '../../core/clock.js';
import type { Profile, Profiler } from '../../ports/loop-profile.js';
import { inRootContext } from '../../core/root-context.js';
import type { Frame } from '../sample.js';
import type { Sampler } from '../sampler.js';
import { makeCpuProfile } from './cpu-profile.js';
import { labelRoute, type LoopProfile, type SampledWindow } from './loop-profile.js';
import { StackNode, StackTree } from './stack-tree.js';

/** While somebody waits for a profile, instead of the usual 20. */
const PROFILED_PER_SECOND = 100;
const MAX_NODES = 5_000;

/** `perf.profile()`: stacks by route, of the last minutes or of the next seconds. */
export class LoopProfiler implements Profiler {
  private readonly running = new Set<() => void>();

  constructor(
    private readonly loop: LoopProfile,
    private readonly sampler: Pick<Sampler, 'setRate' | 'locate'>,
    private readonly nowMs: MonotonicClock,
  ) {}

  async profile({ route, seconds }: Parameters<Profiler['profile']>[0]): Promise<Profile> {
    const windows = seconds === null ? this.loop.recent() : [await this.collect(seconds)];
    const wallMs = this.nowMs() - windows[0]!.sinceMs;
    const tree = new StackTree(MAX_NODES);
    let [samples, idle] = [0, 0];
    for (const window of windows) {
      tree.addTree(window.stacks);
      samples += window.samples;
      idle += window.idle;
    }
    const isWanted = (label: string): boolean => route === null || label === route;
    const trees = tree.root.children.filter(({ name }) => isWanted(name));
    const functions = listFunctions(trees);
    const locate = await this.sampler.locate([...functions.values()]);
    const { routes, busyMs } = countByRoute(windows, wallMs);
    // Time without a request in flight is not sampled: it counts as idle.
    const idling = new StackNode('(idle)', '(idle)', null);
    idling.selfMs = Math.max(0, wallMs - busyMs);
    idling.samples = idling.selfMs === 0 ? 0 : Math.max(1, idle);
    if (route === null) trees.push(idling);
    return {
      samples,
      idle,
      routes: routes.filter((row) => isWanted(row.route)),
      toCpuProfile: () => makeCpuProfile(trees, windows[0]!.sinceMs, ({ key }) => locate(functions.get(key)!)),
    };
  }

  close(): void {
    for (const end of this.running) end();
  }

  private async collect(seconds: number): Promise<SampledWindow> {
    const window = this.loop.collect(MAX_NODES);
    this.sampler.setRate(PROFILED_PER_SECOND);
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.running.delete(end);
        resolve();
      };
      const timer = inRootContext(() => setTimeout(end, 1_000 * seconds).unref());
      this.running.add(end);
    });
    if (this.running.size === 0) this.sampler.setRate();
    this.loop.stopCollecting(window);
    return window;
  }
}

/** The first line seen of each function, whichever of its lines ran: viewers add up by place. */
function listFunctions(trees: readonly StackNode[]): Map<string, Frame> {
  const functions = new Map<string, Frame>();
  const collect = ({ key, frame, children }: StackNode): void => {
    if (frame !== null && frame.line < (functions.get(key)?.line ?? Infinity)) functions.set(key, frame);
    children.forEach(collect);
  };
  trees.forEach(collect);
  return functions;
}

function countByRoute(windows: readonly SampledWindow[], wallMs: number) {
  const rows = new Map<string, { route: string; samples: number; ms: number }>();
  let busyMs = 0;
  for (const [of, { samples, ms }] of windows.flatMap(({ routes }) => [...routes])) {
    if (samples === 0) continue;
    const route = labelRoute(of);
    const row = rows.get(route) ?? { route, samples: 0, ms: 0 };
    rows.set(route, { route, samples: row.samples + samples, ms: row.ms + ms });
    busyMs += ms;
  }
  const routes = [...rows.values()]
    .toSorted((a, b) => b.ms - a.ms)
    .map(({ route, samples, ms }) => ({ route, samples, share: wallMs <= 0 ? 0 : Math.min(1, ms / wallMs) }));
  return { busyMs, routes };
}
