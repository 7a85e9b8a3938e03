import { ByteReader, ByteWriter } from './bytes.js';
import type { Steps } from '../../core/turns.js';
import { COUNTS, isCounted, ProcessSums, RouteSums, RouteWindow, SiteWindow, TIMES } from './window.js';

/** `''` names all routes of a row together, so that a chart of the whole reads one. */
const WHOLE = '';
/** More routes of one bucket than so many: those with the fewest requests are one. */
const MAX_ROUTES = 300;
export const OTHER_ROUTES = 'other routes';
/** A route's targets: the loudest are kept. */
const MAX_TARGETS = 16;

/** All routes of a bucket, with the whole. Nobody may change it before the last step. */
export function* encodeWindow(window: SiteWindow): Steps<Buffer> {
  const writer = new ByteWriter();
  const { observedMs, busyMs, throttledMs, heapRatio } = window.process;
  for (const ms of [observedMs, busyMs, throttledMs]) writer.ms(ms);
  writer.number(heapRatio * 10_000);
  const all = [...window.routes];
  const routes = yield* boundedRoutes(all);
  writer.number(routes.length + 1);
  const whole = yield* together(all.filter(([name]) => isCounted(name)));
  for (const [name, route] of [[WHOLE, whole] as const, ...routes]) {
    writer.text(name);
    writer.bytes(encodeRoute(route));
    yield;
  }
  return writer.take();
}

type NamedWindow = readonly [name: string, window: RouteWindow];

function* boundedRoutes(all: readonly NamedWindow[]): Steps<readonly NamedWindow[]> {
  if (all.length <= MAX_ROUTES) return all;
  const sorted = all.toSorted(([, a], [, b]) => b.count - a.count);
  const small = sorted.splice(MAX_ROUTES - 1);
  return [...sorted, [OTHER_ROUTES, yield* together(small)]];
}

function* together(routes: readonly NamedWindow[]): Steps<RouteWindow> {
  const sum = new RouteWindow();
  for (const [, window] of routes) {
    sum.merge(window);
    yield;
  }
  return sum;
}

function encodeRoute(route: RouteWindow): Buffer {
  const writer = new ByteWriter();
  const { histogram } = route;
  for (const key of COUNTS) writer.number(route[key]);
  for (const key of TIMES) writer.ms(route[key]);
  writer.number(route.over.size);
  for (const [ms, count] of route.over) {
    writer.ms(ms);
    writer.number(count);
  }
  const targets = [...route.targets].toSorted(([, a], [, b]) => b.wallMs - a.wallMs).slice(0, MAX_TARGETS);
  writer.number(targets.length);
  for (const [target, { calls, wallMs }] of targets) {
    writer.text(target);
    writer.number(calls);
    writer.ms(wallMs);
  }
  writer.ms(histogram.count === 0 ? 0 : histogram.minMs);
  writer.ms(histogram.maxMs);
  const pairs = histogram.folded();
  writer.number(pairs.length / 2);
  for (let i = 0, last = 0; i < pairs.length; i += 2) {
    writer.number(pairs[i]! - last);
    writer.number(pairs[i + 1]!);
    last = pairs[i]!;
  }
  return writer.take();
}

function readSums<T extends RouteSums>(reader: ByteReader, into: T): T {
  for (const key of COUNTS) into[key] = reader.number();
  for (const key of TIMES) into[key] = reader.ms();
  for (let n = reader.number(); n > 0; n--) into.over.set(reader.ms(), reader.number());
  for (let n = reader.number(); n > 0; n--) into.called(reader.text(), reader.number(), reader.ms());
  return into;
}

function decodeRoute(bytes: Uint8Array): RouteWindow {
  const reader = new ByteReader(bytes);
  const route = readSums(reader, new RouteWindow());
  const { histogram } = route;
  const [minMs, maxMs] = [reader.ms(), reader.ms()];
  let bucket = 0;
  for (let n = reader.number(); n > 0; n--) {
    bucket += reader.number();
    histogram.unfold(bucket, reader.number());
  }
  if (histogram.count > 0) Object.assign(histogram, { sumMs: route.sumMs, minMs, maxMs });
  return route;
}

/** How long a bucket has been observed: it only grows. */
export const readObservedMs = (data: Uint8Array): number => new ByteReader(data).ms();

/** A bucket as it was written; each route is decoded when it is read. */
export class EncodedWindow {
  readonly process = new ProcessSums();
  private readonly reader: ByteReader;
  private readonly whole: Uint8Array;
  private routesLeft: number;
  private readonly encoded = new Map<string, Uint8Array>();

  constructor(data: Uint8Array) {
    const reader = new ByteReader(data);
    this.reader = reader;
    this.process.observedMs = reader.ms();
    this.process.busyMs = reader.ms();
    this.process.throttledMs = reader.ms();
    this.process.heapRatio = reader.number() / 10_000;
    this.routesLeft = reader.number() - 1;
    reader.text();
    this.whole = reader.bytes();
  }

  get routeNames(): string[] {
    return [...this.routes().keys()];
  }

  /** One route, or the whole; null when it is not in it. */
  window(route: string | null): RouteWindow | null {
    const bytes = this.bytesOf(route);
    return bytes === undefined ? null : decodeRoute(bytes);
  }

  /** A route's sums without the distribution, for less. */
  sums(route: string | null): RouteSums | null {
    const bytes = this.bytesOf(route);
    return bytes === undefined ? null : readSums(new ByteReader(bytes), new RouteSums());
  }

  decoded(): SiteWindow {
    const site = new SiteWindow();
    site.process.add(this.process);
    for (const name of this.routeNames) site.routeOf(name).merge(this.window(name)!);
    return site;
  }

  private bytesOf(route: string | null): Uint8Array | undefined {
    return route === null ? this.whole : this.routes().get(route);
  }

  /** Read with the first of them: the whole comes before them. */
  private routes(): Map<string, Uint8Array> {
    for (; this.routesLeft > 0; this.routesLeft--) this.encoded.set(this.reader.text(), this.reader.bytes());
    return this.encoded;
  }
}
