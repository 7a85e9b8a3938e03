import { entryOf } from '../../core/entry-of.js';
import type { ReadBucket } from '../reader.js';
import { ProcessSums, RouteSums } from '../rows/window.js';
import { OTHER_ROUTES, type EncodedWindow } from '../rows/window-codec.js';

/** Five minutes of the processes of a host. */
export class PodWindow {
  readonly process = new ProcessSums();
  readonly routes = new Map<string, RouteSums>();
  /** Of the process that was observed longest, milliseconds. */
  longestMs = 0;
}

/** Five minutes of all processes together. */
export class JudgedWindow {
  readonly process = new ProcessSums();
  readonly routes = new Map<string, RouteSums>();
  /** The same by host; with one host there is nothing to compare. */
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

  /** What a pod has in the sums. */
  addPod({ pod, window }: Pick<ReadBucket, 'pod' | 'window'>): void {
    const ofPod = entryOf(this.pods, pod, () => new PodWindow());
    ofPod.process.add(window.process);
    ofPod.longestMs = Math.max(ofPod.longestMs, window.process.observedMs);
    for (const [name, sums] of judgedRoutes(window)) entryOf(ofPod.routes, name, () => new RouteSums()).add(sums);
  }
}

/** What can be judged: the small ones together are others in every bucket. */
export function* judgedRoutes(window: EncodedWindow): Generator<[route: string, sums: RouteSums]> {
  for (const name of window.routeNames) if (name !== OTHER_ROUTES) yield [name, window.sums(name)!];
}
