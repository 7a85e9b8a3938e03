import { HISTOGRAM_LAYOUT } from '../../core/histogram.js';
import { ByteReader, ByteWriter } from './bytes.js';
import { TIERS, type Tier } from './tiers.js';

/** Changes when what is written changes; rows of another version are ignored, never migrated. */
export const VERSION = 2;

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
  /** For a store that adds: `data` is what was counted since the row before, which has the number before. */
  readonly part?: number;
}

export function encodeRow({ tier, at, pod, instance, release, data }: HistoryRow): Buffer {
  const writer = new ByteWriter();
  writer.number(VERSION);
  writer.number(HISTOGRAM_LAYOUT);
  writer.number(TIERS.findIndex((rule) => rule.tier === tier));
  writer.number(at);
  for (const text of [pod, instance, release]) writer.text(text);
  writer.bytes(data);
  return writer.take();
}

/** Null for a row of another version, and for what is none. */
export function decodeRow(bytes: Uint8Array): HistoryRow | null {
  try {
    const reader = new ByteReader(bytes);
    if (reader.number() !== VERSION || reader.number() !== HISTOGRAM_LAYOUT) return null;
    const rule = TIERS[reader.number()];
    if (rule === undefined) return null;
    const at = reader.number();
    const [pod, instance, release] = [reader.text(), reader.text(), reader.text()];
    return { tier: rule.tier, at, pod, instance, release, data: reader.bytes() };
  } catch {
    // Shorter than its length: it is no row.
    return null;
  }
}
