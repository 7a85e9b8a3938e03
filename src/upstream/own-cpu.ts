import type { Steps } from '../core/turns.js';

/** One window of the process: how long its loop was busy, and how many requests of each class have ended. */
export interface BusyWindow {
  readonly busyMs: number;
  readonly counts: readonly number[];
}

/** Busy milliseconds of one request of a class. */
export interface OwnCpu {
  readonly mean: number;
  readonly ci: readonly [number, number];
  /** Classes that come and go with it: the figure is the mean of them all. */
  readonly with: readonly number[];
}

/** Requests of one second resemble those of the next: whole blocks of windows are left out. */
const BLOCK = 10;
/** Two-sided 95 % of Student's distribution with the degrees of freedom of a dozen blocks: wide enough for more, too. */
const T_95 = 2.2;
/** Two classes whose counts correlate so cannot be told apart. */
const COLLINEAR = 0.95;
/** Milliseconds: far below what an interval tells. */
const ENOUGH_MS = 1e-4;

/**
 * Non-negative least squares of the busy time on the counts and a constant, with an interval from a jackknife over
 * blocks (Efron, Tibshirani: "An Introduction to the Bootstrap", 11.5), which costs a tenth of drawing them.
 * Spinner, Casale, Brosig, Kounev: "Evaluating approaches to resource demand estimation" (2015), utilisation regression.
 * Null for a class that was not seen, or when the windows are too few.
 */
export function* estimateOwnCpu(windows: readonly BusyWindow[]): Steps<(OwnCpu | null)[]> {
  const classes = windows[0]?.counts.length ?? 0;
  const groups = yield* groupsOf(windows, classes);
  const blocks: Float64Array[] = [];
  for (let from = 0; from + BLOCK <= windows.length; from += BLOCK) {
    blocks.push(momentsOf(windows.slice(from, from + BLOCK), groups));
    yield;
  }
  const estimates = Array.from({ length: classes }, (): OwnCpu | null => null);
  if (blocks.length < 3) return estimates;
  const all = blocks.reduce((sum, block) => sum.map((value, i) => value + block[i]!));
  const means = solve(all, new Float64Array(groups.length + 1));
  const without: Float64Array[] = [];
  for (const block of blocks) {
    const left = all.map((value, i) => value - block[i]!);
    without.push(solve(left, means));
    yield;
  }
  groups.forEach((group, g) => {
    const mean = means[g]!;
    const variance = without.reduce((sum, { [g]: left }) => sum + (left! - mean) ** 2, 0) * (1 - 1 / blocks.length);
    const half = T_95 * Math.sqrt((variance * blocks.length) / Math.max(1, blocks.length - groups.length - 1));
    const ci = [Math.max(0, mean - half), mean + half] as const;
    for (const member of group) estimates[member] = { mean, ci, with: group.filter((other) => other !== member) };
  });
  return estimates;
}

/** Classes that were seen, those that cannot be told apart together. */
function* groupsOf(windows: readonly BusyWindow[], classes: number): Steps<number[][]> {
  const columns = Array.from({ length: classes }, (_, c) => windows.map(({ counts }) => counts[c]!));
  const groups: number[][] = [];
  for (const [c, column] of columns.entries()) {
    yield;
    if (!column.some((count) => count > 0)) continue;
    const alike = groups.find(([first]) => correlation(columns[first!]!, column) > COLLINEAR);
    if (alike === undefined) groups.push([c]);
    else alike.push(c);
  }
  return groups;
}

function correlation(a: readonly number[], b: readonly number[]): number {
  const meanA = meanOf(a);
  const meanB = meanOf(b);
  let [both, ofA, ofB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    both += (a[i]! - meanA) * (b[i]! - meanB);
    ofA += (a[i]! - meanA) ** 2;
    ofB += (b[i]! - meanB) ** 2;
  }
  return ofA === 0 || ofB === 0 ? Number(ofA === ofB) : both / Math.sqrt(ofA * ofB);
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Sums of products of all columns of a least-squares problem: they add up over blocks. The last column is the busy time, the one
 * before it the constant.
 */
function momentsOf(windows: readonly BusyWindow[], groups: readonly number[][]): Float64Array {
  const size = groups.length + 2;
  const moments = new Float64Array(size * size);
  for (const { busyMs, counts } of windows) {
    const row = [...groups.map((group) => group.reduce((sum, c) => sum + counts[c]!, 0)), 1, busyMs];
    for (let i = 0; i < size; i++) for (let j = 0; j < size; j++) moments[i * size + j]! += row[i]! * row[j]!;
  }
  return moments;
}

/** Coordinate descent: each unknown in turn takes its best value that is not negative. `start`: the nearer, the faster. */
function solve(moments: Float64Array, start: Float64Array): Float64Array {
  const unknowns = start.length;
  const size = unknowns + 1;
  const solution = start.slice();
  for (let round = 0; round < 200; round++) {
    let change = 0;
    for (let i = 0; i < unknowns; i++) {
      const diagonal = moments[i * size + i]!;
      let best = 0;
      if (diagonal !== 0) {
        let rest = moments[i * size + unknowns]!;
        for (let j = 0; j < unknowns; j++) if (j !== i) rest -= moments[i * size + j]! * solution[j]!;
        best = Math.max(0, rest / diagonal);
      }
      change = Math.max(change, Math.abs(best - solution[i]!));
      solution[i] = best;
    }
    if (change < ENOUGH_MS) break;
  }
  return solution;
}
