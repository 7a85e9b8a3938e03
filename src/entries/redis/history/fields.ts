import { createHash } from 'node:crypto';
import { inOneTurn } from '../../../core/turns.js';
import type { HistoryRow } from '../../../history/rows/row.js';
import { encodeWindow, EncodedWindow } from '../../../history/rows/window-codec.js';
import { COUNTS, type RouteSums, SiteWindow, TIMES } from '../../../history/rows/window.js';

/**
 * Names of the fields of a bucket's hash. `<release>:<route>:<figure>` is a whole number that adds up, or the greatest of
 * all; `<release>::+` holds what was packed. Names are stored once, by a short hash: `n:<hash>`. `s:<hash>`: minutes of pods that
 * served the release.
 */
export interface Fields {
  readonly names: Map<string, string>;
  readonly greatest: Map<string, number>;
  readonly added: Map<string, number>;
}

/** Fields of one bucket, as Redis answers. */
export type Stored = Record<string, Buffer>;

/** A release whose counts are kept apart; `''`: with all that are older. */
export type Release = string;

const FIGURES = [...COUNTS, ...TIMES];
const MICRO = new Set<string>(TIMES);
/** Beyond it nothing is a name that we have written. */
const MAX_NAME = 1_000;
const MAX_ROUTES = 2_000;

/** 48 bits: two of a thousand names share one in two million buckets. */
export function hashName(name: string): string {
  const known = ids.get(name);
  if (known !== undefined) return known;
  if (ids.size >= MAX_ROUTES) ids.clear();
  const id = createHash('sha1').update(name).digest('base64url').slice(0, 8);
  ids.set(name, id);
  return id;
}

/** Names come again every minute. */
const ids = new Map<string, string>();

/** The id of a release that is kept apart. */
export const hashRelease = (release: Release): string => (release === '' ? '' : hashName(release));
export const packedField = (apart: string): string => `${apart}::+`;

/** Fields that a row adds. `release`: as it is known; `apart`: its id where its counts are kept apart. */
export function makeFields({ data, release }: Pick<HistoryRow, 'data' | 'release'>, apart: string): Fields {
  const fields: Fields = { names: new Map(), greatest: new Map(), added: new Map() };
  const window = new EncodedWindow(data);
  const named = (name: string): string => {
    const id = hashName(name);
    fields.names.set(`n:${id}`, name);
    return id;
  };
  const add = (field: string, value: number): void => {
    const whole = Math.round(value);
    if (whole !== 0) fields.added.set(field, (fields.added.get(field) ?? 0) + whole);
  };
  if (release !== '') add(`s:${named(release)}`, 1);
  const { observedMs, busyMs, throttledMs, heapRatio } = window.process;
  // Also without a request: the process was there.
  fields.added.set(`${apart}::o`, Math.max(1, Math.round(observedMs * 1_000)));
  add(`${apart}::b`, busyMs * 1_000);
  add(`${apart}::t`, throttledMs * 1_000);
  fields.greatest.set(`${apart}::h`, Math.round(heapRatio * 10_000));
  for (const name of window.routeNames) {
    const route = window.window(name)!;
    const base = `${apart}:${named(name)}:`;
    FIGURES.forEach((key, index) => add(`${base}${letterAt(index)}`, route[key] * (MICRO.has(key) ? 1_000 : 1)));
    for (const [ms, count] of route.over) add(`${base}>${ms}`, count);
    for (const [target, { calls, wallMs }] of route.targets) {
      const id = named(target);
      add(`${base}C${id}`, calls);
      add(`${base}W${id}`, wallMs * 1_000);
    }
    const { histogram } = route;
    if (histogram.count === 0) continue;
    const pairs = histogram.folded();
    for (let i = 0; i < pairs.length; i += 2) add(`${base}H${pairs[i]!.toString(36)}`, pairs[i + 1]!);
    fields.greatest.set(`${base}X`, Math.round(histogram.maxMs * 1_000));
    // The least is the greatest of what is left up to an hour.
    fields.greatest.set(`${base}N`, Math.round((LONGEST_MS - Math.min(LONGEST_MS, histogram.minMs)) * 1_000));
  }
  return fields;
}

const LONGEST_MS = 3_600_000;
const letterAt = (index: number): string => String.fromCharCode(97 + index);

/** Rows of a bucket's hash, one for each release that is kept apart. */
export interface ReadBucketRow {
  readonly apart: string;
  readonly release: Release;
  readonly data: Uint8Array;
}

/** Any writer of this Redis may have stored a field: one that is no count of ours is left out. */
export function readRows(stored: Stored): ReadBucketRow[] {
  const names = new Map<string, string>();
  const served = new Set<string>();
  const sites = new Map<string, { site: SiteWindow | null; packed: Buffer | null }>();
  const openSite = (apart: string) => {
    const known = sites.get(apart) ?? { site: null, packed: null };
    sites.set(apart, known);
    return known;
  };
  const plain: [apart: string, route: string, figure: string, value: number][] = [];
  for (const [field, bytes] of Object.entries(stored)) {
    const [first = '', second = '', figure] = field.split(':');
    if (first === 'n' && figure === undefined) {
      if (bytes.length <= MAX_NAME) names.set(second, bytes.toString());
    } else if (first === 's' && figure === undefined) served.add(second);
    else if (field === packedField(first)) openSite(first).packed = bytes;
    else if (figure !== undefined && figure !== '') {
      const value = Number(bytes.toString('latin1'));
      if (Number.isSafeInteger(value) && value >= 0) plain.push([first, second, figure, value]);
    }
  }
  for (const [apart, routeId, figure, value] of plain) {
    const known = openSite(apart);
    const site = (known.site ??= new SiteWindow());
    if (routeId === '') readProcess(site, figure, value);
    else {
      const name = names.get(routeId);
      if (name === undefined || (!site.routes.has(name) && site.routes.size >= MAX_ROUTES)) continue;
      readFigure(site, name, figure, value, names);
    }
  }
  const rows = [...sites].flatMap(([apart, { site, packed }]): ReadBucketRow[] => {
    const data = encodeSite(site, packed);
    return data === null ? [] : [{ apart, release: nameRelease(apart, sites, served, names), data }];
  });
  return [...rows, ...listAbsent(rows, served, names)];
}

/** Routes and process as a row has them: what was packed, and what came later. Null for what cannot be read. */
function encodeSite(site: SiteWindow | null, packed: Buffer | null): Uint8Array | null {
  if (site !== null) for (const { histogram, sumMs } of site.routes.values()) histogram.sumMs = sumMs;
  if (packed === null) return site === null ? null : inOneTurn(encodeWindow(site));
  try {
    const before = new EncodedWindow(packed);
    if (site === null) return before.window(null) === null ? null : packed;
    const whole = before.decoded();
    whole.process.add(site.process);
    for (const [name, route] of site.routes) whole.routeOf(name).merge(route);
    return inOneTurn(encodeWindow(whole));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return site === null ? null : inOneTurn(encodeWindow(site));
  }
}

function readProcess({ process }: SiteWindow, figure: string, value: number): void {
  if (figure === 'o') process.observedMs = value / 1_000;
  else if (figure === 'b') process.busyMs = value / 1_000;
  else if (figure === 't') process.throttledMs = value / 1_000;
  else if (figure === 'h') process.heapRatio = value / 10_000;
}

function readFigure(site: SiteWindow, name: string, figure: string, value: number, names: Map<string, string>): void {
  const route = site.routeOf(name);
  const rest = figure.slice(1);
  const key = rest === '' ? FIGURES[figure.charCodeAt(0) - 97] : undefined;
  if (key !== undefined) route[key] = value / (MICRO.has(key) ? 1_000 : 1);
  else if (figure.startsWith('>')) setOver(route, Number(rest), value);
  else if (figure.startsWith('C') || figure.startsWith('W')) {
    const target = names.get(rest);
    if (target === undefined) return;
    if (figure.startsWith('C')) route.called(target, value, 0);
    else route.called(target, 0, value / 1_000);
  } else if (figure.startsWith('H')) {
    const bucket = Number.parseInt(rest, 36);
    if (bucket >= 0 && bucket < 1_024) route.histogram.unfold(bucket, value);
  } else if (figure === 'X') route.histogram.maxMs = value / 1_000;
  else if (figure === 'N') route.histogram.minMs = Math.max(0, LONGEST_MS - value / 1_000);
}

function setOver({ over }: RouteSums, ms: number, count: number): void {
  if (ms > 0 && Number.isFinite(ms)) over.set(ms, count);
}

/** Names the release of the counts that are not apart: the only one that served. */
function nameRelease(
  apart: string,
  sites: ReadonlyMap<string, unknown>,
  served: ReadonlySet<string>,
  names: ReadonlyMap<string, string>,
): string {
  if (apart !== '') return names.get(apart) ?? '';
  const others = [...served].filter((id) => !sites.has(id));
  const [only] = others.length === 0 ? [...served] : others;
  return others.length > 1 || (others.length === 0 && served.size > 1) ? '' : (names.get(only ?? '') ?? '');
}

const NOTHING = inOneTurn(encodeWindow(new SiteWindow()));

/** Releases that served, and whose counts are among others': empty rows. */
function listAbsent(
  rows: readonly ReadBucketRow[],
  served: ReadonlySet<string>,
  names: ReadonlyMap<string, string>,
): ReadBucketRow[] {
  const known = new Set(rows.map(({ release }) => release));
  return [...served].flatMap((id) => {
    const release = names.get(id);
    return release === undefined || known.has(release) ? [] : [{ apart: '', release, data: NOTHING }];
  });
}
