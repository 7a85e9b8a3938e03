import { getOrAdd } from '../../core/get-or-add.js';
import { pack, unpack, unpacker, type Packed } from './message-pack.js';
import { COUNTS, FIGURES, isCounted, ProcessSums, RouteSums, RouteWindow, SiteWindow } from './window.js';

/**
 * Sums of a route, which Redis adds up by key without knowing them; for keys with `^` it takes the greatest. Figures have negative
 * numbers, `>1000` counts requests slower than that, and a target has its calls (-1) and their time (-2).
 */
type Sums = Map<number | string, number | Map<number, number>>;
const OVER = '>';
const TARGET = 't';
const MAX = '^max';
const MIN = '^min';
const HEAP = '^heap';
/** Counts of durations: 32 octaves of 32 steps, both numbered from -32 to -1, since Lua would write keys 1, 2, 3 as an array. */
type Counts = Map<number, Map<number, number>>;
const SIDE = 32;

/** Keys beside the names of routes: all routes together, for charts of the whole, and the process. */
const WHOLE = '';
const PROCESS = 'process';
/** A route keeps its targets with most time. */
const MAX_TARGETS = 16;

/** By route. */
type PackedSums = ReadonlyMap<string, Uint8Array>;

export function encodeWindow({ process, routes }: SiteWindow): Buffer {
  const whole = new RouteWindow();
  for (const [name, route] of routes) if (isCounted(name)) whole.merge(route);
  const all = [[WHOLE, whole] as const, ...routes].map(([name, route]) => [name, encodeRoute(route)] as const);
  return pack(new Map([[PROCESS, encodeProcess(process)], ...all]));
}

/** @throws RangeError for bytes that are no bucket */
export function readPackedSums(data: Uint8Array): PackedSums {
  const sums = unpack(data);
  if (!(sums instanceof Map)) throw new RangeError('a history row has no routes');
  return sums as PackedSums;
}

/** The distribution of durations goes behind the sums: only some readers need it. */
export const packSums = (sums: Sums, counts: Counts = new Map()): Buffer => pack(sums, counts);

function encodeProcess({ observedMs, busyMs, throttledMs, heapRatio }: ProcessSums): Buffer {
  const times = [observedMs, busyMs, throttledMs].map((ms, index) => [-1 - index, Math.round(ms * 1_000)] as const);
  return packSums(new Map<number | string, number>([...times, [HEAP, Math.round(heapRatio * 10_000)]]));
}

function decodeProcess(bytes: Uint8Array | undefined): ProcessSums {
  const sums = readMap(openSums(bytes));
  const [observedMs = 0, busyMs = 0, throttledMs = 0] = [-1, -2, -3].map((key) => readSum(sums.get(key)) / 1_000);
  return Object.assign(new ProcessSums(), {
    observedMs,
    busyMs,
    throttledMs,
    heapRatio: readSum(sums.get(HEAP)) / 10_000,
  });
}

/** Times are whole microseconds. */
const findFactor = (index: number): number => (index < COUNTS.length ? 1 : 1_000);

function encodeRoute(route: RouteWindow): Buffer {
  const sums: Sums = new Map();
  const { histogram } = route;
  for (const [index, key] of FIGURES.entries()) {
    const value = Math.round(route[key] * findFactor(index));
    // Negative when later requests of a minute lower its cap of outliers.
    if (value !== 0) sums.set(-1 - index, value);
  }
  for (const [ms, count] of route.over) sums.set(`${OVER}${ms}`, Math.round(count));
  const targets = [...route.targets].toSorted(([, a], [, b]) => b.wallMs - a.wallMs).slice(0, MAX_TARGETS);
  for (const [target, { calls, wallMs }] of targets) {
    const pair = [Math.round(calls), Math.round(wallMs * 1_000)];
    sums.set(`${TARGET}${target}`, new Map(pair.map((value, index) => [-1 - index, value])));
  }
  const counts: Counts = new Map();
  if (histogram.count === 0) return packSums(sums, counts);
  const pairs = histogram.folded();
  for (let i = 0; i < pairs.length; i += 2) {
    const [octave, bucket] = [Math.floor(pairs[i]! / SIDE), pairs[i]! % SIDE];
    getOrAdd(counts, octave - SIDE, () => new Map()).set(bucket - SIDE, pairs[i + 1]!);
  }
  sums.set(MAX, Math.round(histogram.maxMs * 1_000));
  // Negated: the greatest of the negated values is the least.
  sums.set(MIN, -Math.round(histogram.minMs * 1_000));
  return packSums(sums, counts);
}

/** Adds an encoded route to `sums`; and its distribution, if they have one. */
function addRoute(bytes: Uint8Array, sums: RouteSums): void {
  const histogram = sums instanceof RouteWindow ? sums.histogram : null;
  const next = openSums(bytes);
  for (const [key, value] of readMap(next)) {
    if (typeof key === 'number') {
      const figure = FIGURES[-1 - key];
      if (figure !== undefined) sums[figure] += readSum(value) / findFactor(-1 - key);
    } else if (key.startsWith(TARGET)) {
      const pair = asMap(value);
      sums.called(key.slice(1), readSum(pair.get(-1)), readSum(pair.get(-2)) / 1_000);
    } else if (key.startsWith(OVER) && Number(key.slice(1)) > 0) sums.exceeded(Number(key.slice(1)), readSum(value));
    else if (histogram !== null && key === MAX) histogram.maxMs = Math.max(histogram.maxMs, readSum(value) / 1_000);
    else if (histogram !== null && key === MIN) histogram.minMs = Math.min(histogram.minMs, readSum(value, -1) / 1_000);
  }
  if (histogram === null) return;
  for (const [octave, counts] of readMap(next))
    for (const [bucket, count] of asMap(counts))
      if (isInSide(octave) && isInSide(bucket))
        histogram.unfold((octave + SIDE) * SIDE + bucket + SIDE, readSum(count));
  if (histogram.count > 0) histogram.sumMs = sums.sumMs;
}

// Any client may write to a shared store: values of another form count as nothing.

const openSums = (bytes: unknown): (() => Packed) => (bytes instanceof Uint8Array ? unpacker(bytes) : () => 0);
const isInSide = (key: number | string): key is number => typeof key === 'number' && key < 0 && key >= -SIDE;
const readSum = (value: Packed | undefined, sign = 1): number =>
  typeof value === 'number' && Number.isFinite(value) ? Math.max(0, sign * value) : 0;
const asMap = (value: Packed): ReadonlyMap<number | string, Packed> =>
  value instanceof Map ? (value as ReadonlyMap<number | string, Packed>) : new Map();

function readMap(next: () => Packed): ReadonlyMap<number | string, Packed> {
  try {
    return asMap(next());
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return new Map();
  }
}

/** Null for bytes that are no bucket: any client may write to a shared store. */
export function openWindow(data: Uint8Array): EncodedWindow | null {
  try {
    return new EncodedWindow(data);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return null;
  }
}

/** A window as it was written: each route is decoded when it is read. */
export class EncodedWindow {
  readonly process: ProcessSums;
  private readonly packed: PackedSums;

  /** @throws RangeError for bytes that are no bucket */
  constructor(data: Uint8Array) {
    this.packed = readPackedSums(data);
    this.process = decodeProcess(this.packed.get(PROCESS));
  }

  get routeNames(): string[] {
    return [...this.packed.keys()].filter((name) => name !== WHOLE && name !== PROCESS);
  }

  /** Adds one route to `sums`, or the whole with null, and returns them. A `RouteWindow` gets the distribution too, which takes longer. */
  addTo<T extends RouteSums>(sums: T, route: string | null): T {
    const bytes = this.packed.get(route ?? WHOLE);
    if (bytes !== undefined) addRoute(bytes, sums);
    return sums;
  }

  decoded(): SiteWindow {
    const site = new SiteWindow();
    site.process.add(this.process);
    for (const name of this.routeNames) this.addTo(site.openRoute(name), name);
    return site;
  }
}
