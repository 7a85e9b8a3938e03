import { open, readFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { decodeRow, encodeRow, type HistoryRow } from '../rows/row.js';

/** Before each row: its length and its checksum, four bytes each. */
const HEAD_BYTES = 8;
/** A length beyond it is none. */
const MAX_ROW_BYTES = 16 * 1024 * 1024;

export function frameOf(row: HistoryRow): Buffer {
  const bytes = encodeRow(row);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
  frame.writeUInt32LE(bytes.length, 0);
  frame.writeUInt32LE(crc32(bytes), 4);
  bytes.copy(frame, HEAD_BYTES);
  return frame;
}

/** The rows of a file; one whose checksum is wrong is left out, and a torn tail ends it. */
export function* rowsOf(bytes: Buffer): Generator<HistoryRow> {
  for (const { body } of framesOf(bytes)) {
    const row = body === null ? null : decodeRow(body);
    if (row !== null) yield row;
  }
}

function* framesOf(bytes: Buffer): Generator<{ readonly body: Buffer | null; readonly end: number }> {
  let offset = 0;
  while (offset + HEAD_BYTES <= bytes.length) {
    const length = bytes.readUInt32LE(offset);
    const end = offset + HEAD_BYTES + length;
    if (length > MAX_ROW_BYTES || end > bytes.length) return;
    const body = bytes.subarray(offset + HEAD_BYTES, end);
    yield { body: crc32(body) === bytes.readUInt32LE(offset + 4) ? body : null, end };
    offset = end;
  }
}

/** A file's bytes; none where there is no file. */
export async function bytesOf(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

/** The length of a file without a torn tail: behind the last row whose checksum is right. */
function wholeLengthOf(bytes: Buffer): number {
  let whole = 0;
  for (const { body, end } of framesOf(bytes)) if (body !== null) whole = end;
  return whole;
}

/**
 * Appends one row to a file, and first cuts off what a crash has torn. A write that fails leaves nothing behind.
 * @param knownLength its length after the last append of this process; null: it is looked at
 * @returns its length now
 */
export async function appendRow(path: string, row: HistoryRow, knownLength: number | null): Promise<number> {
  const frame = frameOf(row);
  const file = await open(path, 'a+', 0o600);
  try {
    const { size } = await file.stat();
    const length = size === 0 || knownLength === size ? size : wholeLengthOf(await bytesOf(path));
    if (length < size) await file.truncate(length);
    try {
      await file.appendFile(frame);
    } catch (error) {
      // Where even that fails, the next append cuts it off.
      await file.truncate(length).catch(() => {});
      throw error;
    }
    return length + frame.length;
  } finally {
    await file.close();
  }
}
