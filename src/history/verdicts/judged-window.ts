import { getOrAdd } from '../../core/get-or-add.js';
import type { ReadBucket } from '../history-store.js';
import type { EncodedWindow } from '../rows/encoded-window.js';
import { OTHERS, ProcessSums, RouteSums } from '../rows/window.js';

/** Sums of one window, of all pods or of one. */
export class WindowSums {
  readonly process = new ProcessSums();
  readonly routes = new Map<string, RouteSums>();
  /** Observed time of the process that was there longest, milliseconds. */
  longestMs = 0;

  add(window: EncodedWindow): void {
    this.process.add(window.process);
    this.longestMs = Math.max(this.longestMs, window.process.observedMs);
    for (const [name, sums] of readJudged(window)) getOrAdd(this.routes, name, () => new RouteSums()).add(sums);
  }
}

/** The window of all processes, with that of each pod. */
export class JudgedWindow extends WindowSums {
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

/** All routes except those that stand for others. */
export function* readJudged(window: EncodedWindow): Generator<[route: string, sums: RouteSums]> {
  for (const name of window.routeNames) if (!OTHERS.has(name)) yield [name, window.addTo(new RouteSums(), name)];
}
