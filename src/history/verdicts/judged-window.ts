import type { ProcessSums, RouteSums } from '../rows/window.js';

/** Five minutes of all processes together. */
export interface JudgedWindow {
  /** When it begins, epoch milliseconds. */
  readonly at: number;
  readonly process: ProcessSums;
  readonly routes: ReadonlyMap<string, RouteSums>;
  /** The same by host; with one host there is nothing to compare. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, RouteSums>>;
  readonly releases: ReadonlySet<string>;
}
