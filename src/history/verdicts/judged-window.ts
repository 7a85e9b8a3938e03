import { entryOf } from '../../core/entry-of.js';
import type { ReadBucket } from '../reader.js';
import { ProcessSums, RouteSums } from '../rows/window.js';
import { OTHER_ROUTES, type EncodedWindow } from '../rows/window-codec.js';

/** Five minutes of the processes of a host. */
export class PodWindow {
  readonly process = new ProcessSums();
  readonly routes = new Map<string, RouteSums>();
  /** The longest that one of its processes was observed, milliseconds. */
  longestMs = 0;
}

/** Five minutes of all processes together. */
export class JudgedWindow {
  readonly process = new ProcessSums();
  readonly routes = new Map<string, RouteSums>();
  /** Sums by host; with one host there is nothing to compare. */
  readonly pods = new Map<string, PodWindow>();
  readonly releases = new Set<string>();

  /** `at`: when it begins, epoch milliseconds. */
  constructor(readonly at: number) {}

  add(bucket: ReadBucket): void {
    const { pod, release, window } = bucket;
    this.process.add(window.process);
    if (release !== '') this.releases.add(release);
    for (const [name, sums] of judgedRoutes(window)) entryOf(this.routes, name, () => new RouteSums()).add(sums);
    if (pod !== '') this.addPod(bucket);
  }

  /** Adds a pod's own part of the sums. */
  addPod({ pod, window }: Pick<ReadBucket, 'pod' | 'window'>): void {
    const ofPod = entryOf(this.pods, pod, () => new PodWindow());
    ofPod.process.add(window.process);
    ofPod.longestMs = Math.max(ofPod.longestMs, window.process.observedMs);
    for (const [name, sums] of judgedRoutes(window)) entryOf(ofPod.routes, name, () => new RouteSums()).add(sums);
  }
}

/** Routes that can be judged: the small ones together are others in every bucket. */
export function* judgedRoutes(window: EncodedWindow): Generator<[route: string, sums: RouteSums]> {
  for (const name of window.routeNames) if (name !== OTHER_ROUTES) yield [name, window.sums(name)!];
}
