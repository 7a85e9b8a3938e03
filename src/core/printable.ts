/** Characters that turn the reading direction: Unicode's Bidi_Control. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** C0 and C1 controls (U+009B alone starts a terminal's escape sequence), line separators, and {@link TURNING}. */
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const escapeCharacter = (found: string): string => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Text from outside on one line: what could end it, or command a terminal, becomes its `\uXXXX`. Cut at `maxLength`. */
export function printable(text: string, maxLength: number): string {
  const cut = text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
  return cut.replaceAll(UNPRINTABLE, escapeCharacter);
}

/** A copy of plain data whose texts are {@link printable}, uncut: loggers that write JSON escape the C0 controls alone. */
export function printableData(value: unknown): unknown {
  if (typeof value === 'string') return printable(value, Infinity);
  if (Array.isArray(value)) return value.map(printableData);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, printableData(item)]));
}

/** JSON for a page: what turns the reading direction, and with it the text around it, is shown as its `\uXXXX`. */
export const displayJson = (value: unknown): string =>
  JSON.stringify(value).replaceAll(TURNING, (found) => `\\${escapeCharacter(found)}`);
