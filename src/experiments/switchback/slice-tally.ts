import type { ResourceSample } from '../../core/record.js';
import type { Route } from '../../core/route.js';
import { COLUMN, type Cell, type Outcome } from '../totals/cells.js';
import type { SliceTotals } from '../totals/experiment-totals.js';

/** The first six cells: a slice has no pre-period. */
const SLICE_CELLS = COLUMN.aborted + 1;

/**
 * One time slice: sums per route, the process's CPU time between its first and its last moment, its memory at the last. Of the
 * process, not of its cgroup: a neighbour in the container alternates nothing.
 */
export class SliceTally {
  private readonly routes = new Map<Route, Float64Array>();
  private cpuMs: number | null = null;
  private memoryBytes: number | null = null;

  constructor(
    private readonly gate: string,
    private readonly pair: string,
    readonly on: boolean,
    private readonly begun: Pick<ResourceSample, 'process'>,
  ) {}

  close(ended: Pick<ResourceSample, 'process'>): void {
    this.cpuMs = (ended.process.cpuSeconds - this.begun.process.cpuSeconds) * 1_000;
    this.memoryBytes = ended.process.rssBytes;
  }

  /** Also after the slice was closed: a request belongs to the slice in which it was given its variant. */
  add(route: Route, outcome: Outcome): void {
    let sums = this.routes.get(route);
    if (sums === undefined) {
      sums = new Float64Array(SLICE_CELLS);
      this.routes.set(route, sums);
    }
    if (outcome.aborted) {
      increase(sums, 'aborted', 1);
      return;
    }
    increase(sums, 'completed', 1);
    increase(sums, 'blockedMs', outcome.blockedMs);
    if (outcome.failed) increase(sums, 'errors', 1);
    if (!outcome.succeeded) return;
    increase(sums, 'succeeded', 1);
    increase(sums, 'succeededMs', outcome.durationMs);
  }

  totals(): SliceTotals {
    const { gate, pair, on, cpuMs, memoryBytes } = this;
    const routes = [...this.routes].map(([route, sums]) => [route.method, route.pattern, ...sums] as const);
    return { gate, pair, on, cpuMs, memoryBytes, routes };
  }
}

function increase(sums: Float64Array, cell: Cell, by: number): void {
  sums[COLUMN[cell]]! += by;
}
