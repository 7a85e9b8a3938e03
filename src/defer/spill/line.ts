import type { FileHandle } from 'node:fs/promises';
import type { DurableEntry } from '../durable/durable-entry.js';

/** Read at a time: parsing it holds the event loop for less than a millisecond. */
const SLICE_BYTES = 64 * 1024;
const NEWLINE = 10;

export interface Line {
  readonly text: string;
  /** Offsets in the file, bytes. */
  readonly start: number;
  readonly end: number;
  readonly complete: boolean;
}

/** The lines of a file from an offset on, a slice a turn of the event loop. */
export async function* linesOf(handle: FileHandle, from: number): AsyncIterable<Line> {
  let start = from;
  let pieces: Buffer[] = [];
  let position = from;
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(SLICE_BYTES), 0, SLICE_BYTES, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    let slice = buffer.subarray(0, bytesRead);
    for (let at = slice.indexOf(NEWLINE); at >= 0; at = slice.indexOf(NEWLINE)) {
      const bytes = Buffer.concat([...pieces, slice.subarray(0, at)]);
      pieces = [];
      slice = slice.subarray(at + 1);
      const end = start + bytes.length + 1;
      if (bytes.length > 0) yield { text: bytes.toString(), start, end, complete: true };
      start = end;
    }
    if (slice.length > 0) pieces.push(slice);
  }
  if (pieces.length === 0) return;
  const bytes = Buffer.concat(pieces);
  yield { text: bytes.toString(), start, end: start + bytes.length, complete: false };
}

export function lineOf({ json, ...rest }: DurableEntry): string {
  const head = JSON.stringify(rest);
  return json === undefined ? `${head}\n` : `${head.slice(0, -1)},"data":${json}}\n`;
}

/** Entries of the same file, by the offsets of their lines. */
export const struckLine = (offsets: readonly number[]): string => `${JSON.stringify({ struck: offsets })}\n`;

/** What entries of 0.1.0 lack. */
const DEFAULTS = {
  traceparent: null,
  route: null,
  together: null,
  options: { queue: null, backoffMs: 1_000, maxBackoffMs: 60_000, delayMs: 0, priority: 0 },
};

/** Null for what is no entry. */
export function parseEntry(text: string): DurableEntry | null {
  const { data, ...rest } = parsed(text) as { data?: unknown } & Partial<DurableEntry>;
  if (typeof rest.id !== 'string' || typeof rest.work !== 'string') return null;
  const entry = { ...DEFAULTS, ...(rest as DurableEntry), json: data === undefined ? undefined : JSON.stringify(data) };
  return { ...entry, options: { ...DEFAULTS.options, ...entry.options } };
}

/** What a line strikes off: offsets, in files of 0.1.0 ids; null for other lines. */
export function parseStruck(text: string): (number | string)[] | null {
  const { struck } = parsed(text) as { struck?: unknown };
  return Array.isArray(struck) ? (struck as (number | string)[]) : null;
}

function parsed(text: string): object {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}
