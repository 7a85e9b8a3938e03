const NEWLINE = 0x0a;
const SPACE = 0x20;
const MINUS = 0x2d;
const ZERO = 0x30;

/** The number that a file of one number holds, for the most frequent reads; null for anything but a decimal integer below 2^63. */
export function onlyNumber(bytes: Uint8Array, length: number): number | null {
  const negative = bytes[0] === MINUS;
  const end = bytes[length - 1] === NEWLINE ? length - 1 : length;
  let value = 0;
  for (let at = negative ? 1 : 0; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  if (end === (negative ? 1 : 0) || value >= 2 ** 63) return null;
  return negative ? -value : value;
}

/** The number at the start of a text; null for anything but a decimal integer below 2^63. */
export function firstNumber(text: string): number | null {
  return numberAt(text, 0);
}

/** The number after the first space: the period of `cpu.max`, the run-queue time of `schedstat`. */
export function secondNumber(text: string): number | null {
  const space = text.indexOf(' ');
  return space < 0 ? null : numberAt(text, space + 1);
}

/**
 * The number of the line `key number`. Lines are searched for, because their order and number differ between kernels;
 * `anon` does not find `inactive_anon 1`.
 */
export function lineNumber(text: string, key: string): number | null {
  for (let at = text.indexOf(key); at >= 0; at = text.indexOf(key, at + 1)) {
    const startsLine = at === 0 || text.charCodeAt(at - 1) === NEWLINE;
    const after = at + key.length;
    if (startsLine && text.charCodeAt(after) === SPACE) return numberAt(text, after + 1);
  }
  return null;
}

/** The number right after the first `marker` at or behind `from`, spaces between them skipped. */
export function numberAfter(text: string, marker: string, from = 0): number | null {
  const at = text.indexOf(marker, from);
  if (at < 0) return null;
  let start = at + marker.length;
  while (text.charCodeAt(start) === SPACE) start += 1;
  return numberAt(text, start);
}

/** A count or a number of bytes that a double holds exactly; null beyond that, because then it is no real one. */
export function exactCount(value: number | null): number | null {
  return value === null || value < 0 || value > Number.MAX_SAFE_INTEGER ? null : value;
}

/** A counter of time in seconds; null for what no counter says. */
export function seconds(value: number | null, unitsPerSecond: number): number | null {
  return value === null || value < 0 ? null : value / unitsPerSecond;
}

/** Digits up to the end of the word. No slice and no `Number()`: this runs a few dozen times a sample. */
function numberAt(text: string, from: number): number | null {
  const negative = text.charCodeAt(from) === MINUS;
  const firstDigit = negative ? from + 1 : from;
  let at = firstDigit;
  let value = 0;
  for (; at < text.length; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  const ended = at === text.length || text.charCodeAt(at) === NEWLINE || text.charCodeAt(at) === SPACE;
  if (at === firstDigit || !ended || value >= 2 ** 63) return null;
  return negative ? -value : value;
}
