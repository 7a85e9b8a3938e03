import { readFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { decodeRow, encodeRow, type HistoryRow } from '../rows/row.js';

/** Before each row: a mark, its length and its checksum, four bytes each. What follows damage is found by the mark. */
const HEAD_BYTES = 12;
const MARK = Buffer.from([0x9e, 0x70, 0x72, 0x01]);
/** A length beyond it is none. */
const MAX_ROW_BYTES = 16 * 1024 * 1024;

export function encodeFrame(row: HistoryRow): Buffer {
  const bytes = encodeRow(row);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
  MARK.copy(frame);
  frame.writeUInt32LE(bytes.length, 4);
  frame.writeUInt32LE(crc32(bytes), 8);
  bytes.copy(frame, HEAD_BYTES);
  return frame;
}

/** Reads the rows of a file; none where there is no file. Damage, such as a torn write, costs the rows that it is in. */
export async function readRows(path: string): Promise<HistoryRow[]> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const rows: HistoryRow[] = [];
  for (let offset = bytes.indexOf(MARK); offset !== -1 && offset + HEAD_BYTES <= bytes.length;) {
    const length = bytes.readUInt32LE(offset + 4);
    const end = offset + HEAD_BYTES + length;
    const body = length <= MAX_ROW_BYTES && end <= bytes.length ? bytes.subarray(offset + HEAD_BYTES, end) : null;
    const isRight = body !== null && crc32(body) === bytes.readUInt32LE(offset + 8);
    const row = isRight ? decodeRow(body) : null;
    if (row !== null) rows.push(row);
    // After a row that is not right, the next mark counts: its length may be what is wrong.
    offset = bytes.indexOf(MARK, isRight ? end : offset + 1);
  }
  return rows;
}
