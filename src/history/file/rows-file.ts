import { open, readFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { decodeRow, encodeRow, type HistoryRow } from '../rows/row.js';

/** Before each row: a mark, its length and its checksum, four bytes each. What follows damage is found by the mark. */
const HEAD_BYTES = 12;
const MARK = Buffer.from([0x9e, 0x70, 0x72, 0x01]);
/** A length beyond it is none. */
const MAX_ROW_BYTES = 16 * 1024 * 1024;

export function frameOf(row: HistoryRow): Buffer {
  const bytes = encodeRow(row);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
  MARK.copy(frame);
  frame.writeUInt32LE(bytes.length, 4);
  frame.writeUInt32LE(crc32(bytes), 8);
  bytes.copy(frame, HEAD_BYTES);
  return frame;
}

/** The rows of a file; damage costs the rows that it is in. */
export function* rowsOf(bytes: Buffer): Generator<HistoryRow> {
  for (const { body } of framesOf(bytes)) {
    const row = decodeRow(body);
    if (row !== null) yield row;
  }
}

/** Rows whose checksum is right. After one that is not, the next mark counts: its length may be what is wrong. */
function* framesOf(bytes: Buffer): Generator<{ readonly body: Buffer; readonly end: number }> {
  for (let offset = bytes.indexOf(MARK); offset !== -1 && offset + HEAD_BYTES <= bytes.length;) {
    const length = bytes.readUInt32LE(offset + 4);
    const end = offset + HEAD_BYTES + length;
    const body = length <= MAX_ROW_BYTES && end <= bytes.length ? bytes.subarray(offset + HEAD_BYTES, end) : null;
    const isRight = body !== null && crc32(body) === bytes.readUInt32LE(offset + 8);
    if (isRight) yield { body, end };
    offset = bytes.indexOf(MARK, isRight ? end : offset + 1);
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
  for (const { end } of framesOf(bytes)) whole = end;
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
      // The next append cuts it off where even that fails.
      await file.truncate(length).catch(() => {});
      throw error;
    }
    return length + frame.length;
  } finally {
    await file.close();
  }
}
