import { readFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { decodeRow, encodeRow, ROW_BEGIN, type HistoryRow } from '../rows/row.js';

/** Before each row: its length and its checksum, four bytes each. */
const HEAD_BYTES = 8;

export function frameOf(row: HistoryRow): Buffer {
  const bytes = encodeRow(row);
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32LE(bytes.length, 0);
  head.writeUInt32LE(crc32(bytes), 4);
  return Buffer.concat([head, bytes]);
}

/** The rows of a file. What is none is passed over: what a crash or a full disk has torn, a wrong checksum, another version. */
export function* rowsOf(bytes: Buffer): Generator<HistoryRow> {
  for (let at = 0; at + HEAD_BYTES < bytes.length;) {
    const begin = at + HEAD_BYTES;
    const end = begin + bytes.readUInt32LE(at);
    const body = bytes.subarray(begin, end);
    if (body.length > 0 && end <= bytes.length && crc32(body) === bytes.readUInt32LE(at + 4)) {
      const row = decodeRow(body);
      if (row !== null) yield row;
      at = end;
    } else {
      const next = bytes.indexOf(ROW_BEGIN, begin + 1);
      if (next === -1) return;
      at = next - HEAD_BYTES;
    }
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
