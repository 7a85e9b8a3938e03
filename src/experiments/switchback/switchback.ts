import { getOrAdd } from '../../core/get-or-add.js';
import { residentBytes } from '../../core/resident-set.js';
import type { Route } from '../../request/routes.js';
import type { ResolvedExperiments } from '../experiments.options.js';
import { addOutcome, type Outcome, SLICE_CELLS } from '../totals/gate-tally.js';
import type { SliceTotals } from '../totals/experiment-totals.js';

/** CPU time and memory of the process, not of its cgroup: a neighbour in the container alternates nothing. */
export interface ProcessUse {
  cpuMs: number;
  memoryBytes: number;
}

function useOfProcess(): ProcessUse {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000, memoryBytes: residentBytes() };
}

/** Slices that are kept: the oldest pair makes room for the newest. */
const MAX_SLICES = 1_000;

/** Alternates a gate by time slices, in pairs of `on` and `off` in random order, against trends and rhythms. */
export class Switchback {
  on = false;
  /** The slice to count for; null during the wash-out, and when stopped. */
  current: SliceTally | null = null;
  private readonly closed: SliceTally[] = [];
  private timer: NodeJS.Timeout | null = null;
  private pairs = 0;
  private second: boolean | null = null;

  constructor(
    private readonly plan: NonNullable<ResolvedExperiments['switchback']>,
    /** Distinguishes the pairs of this process from those of others. */
    private readonly source: string,
    private readonly random: () => number = Math.random,
    private readonly use: () => ProcessUse = useOfProcess,
  ) {}

  get gate(): string {
    return this.plan.gate;
  }

  /** Begins a slice, and goes on with the next one. */
  start(): void {
    this.current = null;
    if (this.second === null) {
      this.pairs += 1;
      this.on = this.random() < 0.5;
      this.second = !this.on;
    } else {
      this.on = this.second;
      this.second = null;
    }
    this.after(this.plan.washoutMs, () => this.open());
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.current = null;
  }

  totals(): SliceTotals[] {
    return this.closed.map((slice) => slice.totals());
  }

  private open(): void {
    const slice = new SliceTally(this.gate, `${this.source}:${this.pairs}`, this.on, this.use());
    this.current = slice;
    this.after(this.plan.sliceMs - this.plan.washoutMs, () => {
      slice.close(this.use());
      this.closed.push(slice);
      if (this.closed.length > MAX_SLICES) this.closed.splice(0, 2);
      this.start();
    });
  }

  private after(ms: number, step: () => void): void {
    this.timer = setTimeout(step, ms).unref();
  }
}

/** One time slice: sums per route, CPU time between its first and its last moment, memory at the last. */
export class SliceTally {
  private readonly routes = new Map<Route, Float64Array>();
  private ended: ProcessUse | null = null;

  constructor(
    private readonly gate: string,
    private readonly pair: string,
    readonly on: boolean,
    private readonly begun: ProcessUse,
  ) {}

  close(ended: ProcessUse): void {
    this.ended = ended;
  }

  /** Also after the slice was closed: a request belongs to the slice in which it was given its variant. */
  add(route: Route, outcome: Outcome): void {
    const sums = getOrAdd(this.routes, route, () => new Float64Array(SLICE_CELLS));
    addOutcome(sums, 0, outcome);
  }

  totals(): SliceTotals {
    const { gate, pair, on, ended } = this;
    const cpuMs = ended === null ? null : ended.cpuMs - this.begun.cpuMs;
    const routes = [...this.routes].map(([route, sums]) => [route.method, route.pattern, ...sums] as const);
    return { gate, pair, on, cpuMs, memoryBytes: ended?.memoryBytes ?? null, routes };
  }
}
