import { isHeaderValue, OF_CONNECTION } from './headers.js';
import { UsageError } from './usage.js';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, min: 60_000 };

/** `'60s'` as whole milliseconds. */
export function durationMs(text: string, option: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|min)$/.exec(text.trim()) ?? [];
  if (amount === undefined)
    throw new UsageError(`${option} must be a duration such as 500ms, 20s or 2m, got "${text}".`);
  return Math.round(Number(amount) * UNITS[unit!]!);
}

/** A number above 0. */
export function positive(text: string, option: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value <= 0)
    throw new UsageError(`${option} must be a number above 0, got "${text}".`);
  return value;
}

/** `'1,2,3'`: each above the one before. */
export function parseSteps(text: string): number[] {
  const steps = text.split(',').map((part) => positive(part, '--steps'));
  if (steps.some((step, i) => i > 0 && step <= steps[i - 1]!))
    throw new UsageError(`--steps must rise, such as 1,2,3,4, got "${text}".`);
  return steps;
}

/** `'name: value'` */
export function parseHeaders(given: readonly string[], option: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const text of given) {
    const [, name, value] = /^([\w-]+)\s*:\s*(.*)$/s.exec(text) ?? [];
    // The value may be a secret: it is not printed.
    if (name === undefined || /[\r\n]/.test(value!)) throw new UsageError(`${option} must be 'name: value'.`);
    if (!isHeaderValue(value!))
      throw new UsageError(`${option}: the value of ${name} holds a character that no header may hold. Encode it.`);
    if (OF_CONNECTION.has(name.toLowerCase()))
      throw new UsageError(`${option}: ${name} is made anew for each request. Leave it out.`);
    headers[name.toLowerCase()] = value!;
  }
  return headers;
}

/** NaN: of no answer. Infinity: of a request that has failed. */
export function ms(value: number): string {
  if (Number.isNaN(value)) return 'no answer';
  if (value === Infinity) return 'an error';
  return value >= 10_000 ? `${(value / 1_000).toFixed(1)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

/** Only what is 0 looks like it. */
export function percent(share: number): string {
  const [value, size] = [100 * share, 100 * Math.abs(share)];
  if (size !== 0 && size < 0.1) return `${Number(value.toPrecision(1))} %`;
  return `${value.toFixed(size !== 0 && size < 10 ? 1 : 0)} %`;
}

export const perSecond = (rate: number): string => `${Number(rate.toFixed(1))}/s`;

/** Controls and what turns the reading direction: text from a server or a file must not steer a terminal. */
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
export const printable = (text: string): string => text.slice(0, 300).replaceAll(UNPRINTABLE, '�');

/** One word of a POSIX shell. */
export const shellWord = (text: string): string => `'${text.replaceAll("'", `'"'"'`)}'`;
