import type { FileHandle } from 'node:fs/promises';
import type { DurableEntry } from '../durable/durable-entry.js';

/** Read at a time: parsing it blocks the event loop for less than a millisecond. */
const SLICE_BYTES = 64 * 1024;
const NEWLINE = 10;
/** The start of a line that strikes entries of the same file off, by the offsets of their lines. */
export const STRUCK = '{"struck":';

/** A dead letter has when and why it was refused. */
export interface SpilledEntry extends DurableEntry {
  readonly error?: string;
  /** Epoch milliseconds. */
  readonly rejectedAt?: number;
}

interface Line {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly complete: boolean;
}

/** The lines of a file up to an offset, a slice a turn of the event loop. */
export async function* readLines(handle: FileHandle, until: number): AsyncIterable<Line> {
  let [start, position] = [0, 0];
  let pieces: Buffer[] = [];
  while (position < until) {
    const length = Math.min(SLICE_BYTES, until - position);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, position);
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
  if (pieces.length > 0) yield { text: Buffer.concat(pieces).toString(), start, end: position, complete: false };
}

export function writeEntry({ json, ...rest }: DurableEntry): string {
  const head = JSON.stringify(rest);
  return json === undefined ? `${head}\n` : `${head.slice(0, -1)},"data":${json}}\n`;
}

/** The entry of a line; null for what is none: whoever reaches the disk can write anything. */
export function parseEntry(text: string): SpilledEntry | null {
  const { data, ...rest } = parse(text) as { data?: unknown } & Partial<DurableEntry>;
  const { id, work, name, timeoutMs, attempts, at, options } = rest as Partial<DurableEntry>;
  const hasTexts = [id, work, name].every((one) => typeof one === 'string');
  const hasNumbers = [timeoutMs, attempts, at, options?.backoffMs, options?.maxBackoffMs].every(Number.isFinite);
  if (!hasTexts || !hasNumbers) return null;
  return { ...(rest as SpilledEntry), json: data === undefined ? undefined : JSON.stringify(data) };
}

/** The offsets that a line strikes off; null for other lines, which are not parsed. */
export function parseStruck(text: string): readonly number[] | null {
  if (!text.startsWith(STRUCK)) return null;
  const { struck } = parse(text) as { struck?: unknown };
  return Array.isArray(struck) ? (struck as number[]) : [];
}

function parse(text: string): object {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}
