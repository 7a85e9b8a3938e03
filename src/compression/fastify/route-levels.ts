import * as zlib from 'node:zlib';
import { optionError } from '../../core/option.js';
import { LEVEL_LIMITS } from '../codec/level.js';

/** The `compress` option of a single Fastify route. */
export interface RouteCompressOption {
  brotliOptions?: { params?: Readonly<Record<number, number>> };
  zlibOptions?: { level?: number; params?: Readonly<Record<number, number>> };
}

/**
 * A route's own compression options must be safe too.
 * @throws PERF_ERR_OPTION when they ask for a level that is too slow for bodies made per request
 */
export function checkRouteLevels(url: string, option: RouteCompressOption): void {
  const { params } = option.brotliOptions ?? {};
  // Options without a quality drop the plugin's own default, and then zlib's applies, which is 11.
  const quality = option.brotliOptions === undefined ? 4 : (params?.[zlib.constants.BROTLI_PARAM_QUALITY] ?? 11);
  refuseAbove(`compress.brotliOptions of route ${url}`, 'br', quality);
  refuseAbove(`compress.zlibOptions.level of route ${url}`, 'gzip', option.zlibOptions?.level ?? 6);
}

function refuseAbove(path: string, coding: 'br' | 'gzip', level: number): void {
  const { safe, cost } = LEVEL_LIMITS[coding];
  if (level <= safe) return;
  throw optionError(
    path,
    `a ${coding} level of at most ${safe}`,
    level,
    `${cost}. Lower it, or set \`compression.allowSlowLevels: true\` if these bodies are made rarely.`,
  );
}
