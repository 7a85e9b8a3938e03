import type { FileHandle } from 'node:fs/promises';
import type { DurableEntry } from '../durable/durable-entry.js';

/** Read at a time: parsing it holds the event loop for less than a millisecond. */
const SLICE_BYTES = 64 * 1024;
const NEWLINE = 10;
const STRUCK = '{"struck":';

/** A dead letter says when and why it was refused. */
export interface SpilledEntry extends DurableEntry {
  readonly error?: string;
  /** Epoch milliseconds. */
  readonly rejectedAt?: number;
}

export interface Line {
  readonly text: string;
  /** Offsets in the file, bytes. */
  readonly start: number;
  readonly end: number;
  readonly complete: boolean;
}

/** The lines of a file from an offset on, a slice a turn of the event loop. */
export async function* readLines(handle: FileHandle, from: number): AsyncIterable<Line> {
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

export function writeEntry({ json, ...rest }: DurableEntry): string {
  const head = JSON.stringify(rest);
  return json === undefined ? `${head}\n` : `${head.slice(0, -1)},"data":${json}}\n`;
}

/** Strikes entries of the same file off, by the offsets of their lines. */
export const writeStruck = (offsets: readonly number[]): string => `${STRUCK}${JSON.stringify(offsets)}}\n`;

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
  return Array.isArray(struck) ? (struck as number[]) : null;
}

function parse(text: string): object {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}
