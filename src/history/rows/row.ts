import { crc32 } from 'node:zlib';
import { HISTOGRAM_LAYOUT } from '../../core/histogram.js';
import { pack, unpack, type Packed } from './message-pack.js';
import { TIERS, type Tier } from './tiers.js';

/** Raised with every change of the format: rows of another version are ignored, never migrated. */
export const VERSION = 3;

/** One bucket of one process, all its routes. A later row of the same tier, time and instance replaces it. */
export interface HistoryRow {
  readonly tier: Tier;
  /** When the bucket begins, epoch milliseconds. */
  readonly at: number;
  /** The host's name. */
  readonly pod: string;
  /** One run of one process: no two have the same. */
  readonly instance: string;
  /** The release that was deployed; `''` where none is known. */
  readonly release: string;
  /** Written by `encodeWindow()`. */
  readonly data: Uint8Array;
  /** For a shared store, which adds rows up: number of the row, whose `data` was counted since the one before. */
  readonly part?: number;
}

export function encodeRow({ tier, at, pod, instance, release, data }: HistoryRow): Buffer {
  const texts = Object.entries({ tier, pod, instance, release });
  return pack(
    new Map<string, Packed>([['version', [VERSION, HISTOGRAM_LAYOUT].join()], ['at', at], ...texts, ['data', data]]),
  );
}

/** Null for a row of another version, and for bytes that are no row. */
export function decodeRow(bytes: Uint8Array): HistoryRow | null {
  let row: Packed;
  try {
    row = unpack(bytes);
  } catch {
    return null;
  }
  if (!(row instanceof Map) || row.get('version') !== [VERSION, HISTOGRAM_LAYOUT].join()) return null;
  const [at, data, ...texts] = ['at', 'data', 'tier', 'pod', 'instance', 'release'].map((key): unknown => row.get(key));
  const [tier, pod, instance, release] = texts;
  const isKnown = TIERS.some((rule) => rule.tier === tier) && texts.every((text) => typeof text === 'string');
  if (!isKnown || typeof at !== 'number' || !(data instanceof Uint8Array)) return null;
  return { tier, at, pod, instance, release, data } as HistoryRow;
}

/** Before each row in a file: a mark, the row's length and checksum, four bytes each. After damage the next mark finds the next row. */
const HEAD_BYTES = 12;
const MARK = Buffer.from([0x9e, 0x70, 0x72, 0x01]);

export function encodeFrame(row: HistoryRow): Buffer {
  const bytes = encodeRow(row);
  const head = Buffer.alloc(HEAD_BYTES);
  MARK.copy(head);
  head.writeUInt32LE(bytes.length, 4);
  head.writeUInt32LE(crc32(bytes), 8);
  return Buffer.concat([head, bytes]);
}

/** Reads the rows of a file, and skips those that are damaged, for example by a torn write. */
export function readFrames(bytes: Buffer): HistoryRow[] {
  const rows: HistoryRow[] = [];
  for (let offset = bytes.indexOf(MARK); offset !== -1 && offset + HEAD_BYTES <= bytes.length;) {
    const end = offset + HEAD_BYTES + bytes.readUInt32LE(offset + 4);
    const body = bytes.subarray(offset + HEAD_BYTES, end);
    const isRight = end <= bytes.length && crc32(body) === bytes.readUInt32LE(offset + 8);
    const row = isRight ? decodeRow(body) : null;
    if (row !== null) rows.push(row);
    // A damaged row's length may be wrong: the search goes on behind its mark.
    offset = bytes.indexOf(MARK, isRight ? end : offset + 1);
  }
  return rows;
}
