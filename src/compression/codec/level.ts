import type { ContentCoding } from '../rules/content-coding.js';

/** Levels that an application has chosen; a coding without one is chosen by size. */
export interface Levels {
  readonly zstd: number | null;
  readonly br: number | null;
  readonly gzip: number | null;
}

/**
 * The highest level of each coding that is safe for bodies made per request, the range there is, and what more would cost: CPU
 * of one 3 MB JSON body, measured on one core.
 */
export const LEVEL_LIMITS = {
  zstd: { min: 1, safe: 12, max: 22, cost: 'zstd 19 takes 2.3 s of CPU for one 3 MB body where zstd 3 takes 20 ms' },
  br: { min: 0, safe: 6, max: 11, cost: 'brotli 11 takes 8.3 s of CPU for one 3 MB body where brotli 4 takes 61 ms' },
  gzip: { min: 1, safe: 7, max: 9, cost: 'gzip 9 takes 27 % more CPU than gzip 6 for 3 % fewer bytes' },
} as const;

/** What a body is compressed for: once for its own request, once for many requests, or while the thread pool is full. */
export type Effort = 'once' | 'shared' | 'hurried';

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * The level, always explicit: zlib's own default for brotli is 11. `once` costs at most some 65 ms of CPU at 5 MB, `shared` is
 * the knee of the curve (3 MB: zstd 9 74 ms, br 5 82 ms, gzip 6 61 ms), `hurried` is the cheapest there is.
 */
export function levelFor(coding: ContentCoding, byteLength: number, effort: Effort, levels: Levels): number {
  const chosen = coding === 'deflate' ? levels.gzip : levels[coding];
  if (effort === 'hurried') return chosen === null ? 1 : Math.min(1, chosen);
  if (chosen !== null) return chosen;
  const shared = effort === 'shared';
  switch (coding) {
    case 'zstd':
      return shared ? 9 : 3;
    case 'br':
      if (shared) return 5;
      return byteLength <= MIB ? 4 : 3;
    default:
      return shared || byteLength <= 256 * KIB ? 6 : 1;
  }
}
