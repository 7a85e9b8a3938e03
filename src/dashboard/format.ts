// Formats of figures, on the page and as text. Runs in both places: no `node:*` here.
import { innermostCall } from '../core/innermost-call.js';
import type { BlockRow } from './view.js';

/** From here on three digits are too few: values are rounded. */
const FOUR_DIGITS = 999.5;

/** At most three digits, and a unit: `12.5 ms`, `1.25 s`, `2 min`. */
export function formatDuration(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < FOUR_DIGITS) return `${short(ms)} ms`;
  if (ms < 60_000) return `${short(ms / 1_000)} s`;
  return ms < 3_600_000 ? `${short(ms / 60_000)} min` : `${short(ms / 3_600_000)} h`;
}

/** Milliseconds alone, for columns that name the unit. */
export const formatMs = (ms: number | null): string =>
  ms === null ? '–' : ms >= FOUR_DIGITS ? grouped(ms) : digits(ms);

/** Without zeros at the end, which only columns need. */
const short = (value: number): string => String(Number(digits(value)));

function digits(value: number): string {
  if (value === 0) return '0';
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

/** `12,345` */
export const grouped = (value: number): string => Math.round(value).toLocaleString('en-US');

/** `1.2` below ten, whole above. */
export const formatRate = (value: number | null): string =>
  value === null ? '–' : value >= 10 || value === 0 ? grouped(value) : value.toFixed(1);

export const formatPercent = (share: number | null): string =>
  share === null ? '–' : `${(share * 100).toFixed(share === 0 || share >= 0.0995 ? 0 : 1)} %`;

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** In units of 1,024, as containers count: `212 MB`. */
export function formatBytes(bytes: number | null): string {
  if (bytes === null) return '–';
  let [value, unit] = [bytes, 0];
  while (value >= FOUR_DIGITS && unit < UNITS.length - 1) [value, unit] = [value / 1_024, unit + 1];
  return `${short(value)} ${UNITS[unit]}`;
}

export const counted = (count: number, noun: string): string => `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;

/** `5 s`, `3 min`, `2 h`, `4 d`: how long ago, or how long it runs. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129_600 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** The line of the application's code; else the innermost call with a name. */
export const findPlace = ({ location, stack }: Pick<BlockRow, 'location' | 'stack'>): string | null =>
  location ?? innermostCall(stack);
