import { getOrAdd } from '../../core/get-or-add.js';
import type { ReadBucket } from '../history-store.js';
import type { EncodedWindow } from '../rows/encoded-window.js';
import { OTHERS, ProcessSums, RouteSums } from '../rows/window.js';

export class WindowSums {
  readonly process = new ProcessSums();
  readonly routes = new Map<string, RouteSums>();
  /** The longest that one of its processes was observed, milliseconds. */
  longestMs = 0;

  add(window: EncodedWindow): void {
    this.process.add(window.process);
    this.longestMs = Math.max(this.longestMs, window.process.observedMs);
    for (const [name, sums] of readJudged(window)) getOrAdd(this.routes, name, () => new RouteSums()).add(sums);
  }
}

/** Five minutes of all processes. */
export class JudgedWindow extends WindowSums {
  /** Sums by host; with one host there is nothing to compare. */
  readonly pods = new Map<string, WindowSums>();
  readonly releases = new Set<string>();

  /** `at`: when it begins, epoch milliseconds. */
  constructor(readonly at: number) {
    super();
  }

  take({ pod, release, window }: ReadBucket): void {
    this.add(window);
    if (release !== '') this.releases.add(release);
    if (pod !== '') this.addPod(pod, window);
  }

  addPod(pod: string, window: EncodedWindow): void {
    getOrAdd(this.pods, pod, () => new WindowSums()).add(window);
  }
}

export function* readJudged(window: EncodedWindow): Generator<[route: string, sums: RouteSums]> {
  for (const name of window.routeNames) if (!OTHERS.has(name)) yield [name, window.addTo(new RouteSums(), name)];
}
