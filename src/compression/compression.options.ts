import {
  boolean,
  feature,
  list,
  object,
  choice,
  optionalNumber,
  optionError,
  type Option,
  type Resolved,
} from '../core/option.js';
import { bytes } from '../core/shared-options.js';
import { CONTENT_CODINGS, supportedCodings, type ContentCoding } from './rules/accept-encoding.js';

/** How responses are compressed. */
export interface CompressionOptions {
  /**
   * Smaller bodies are sent as they are, bytes: they fit into one segment either way.
   * @default 1024
   */
  thresholdBytes?: number;
  /**
   * Content codings that are offered, in the order of preference. `zstd` needs Node 22.15 or later. Without this option it needs a
   * request over a socket of Node's, too: adapters of function platforms break it.
   * @default what this Node can do of zstd, br, gzip, deflate, in that order
   */
  encodings?: readonly ContentCoding[];
  /**
   * Fixed levels, for bodies of every size; `gzip` counts for deflate too. Above br 6, gzip 7 or zstd 12 the boot stops.
   * @default by size: zstd 3 (1 up to 64 KB), br 4 (3 up to 16 KB and above 1 MB), gzip 6 (1 above 256 KB); for shared answers zstd 9, br 5, gzip 6
   */
  levels?: { zstd?: number; br?: number; gzip?: number };
  /**
   * Allows levels that take seconds of CPU for a large body. For applications whose bodies are made rarely.
   * @default false
   */
  allowSlowLevels?: boolean;
  /**
   * Keeps encoded bodies, so that equal ones are encoded once. `maxBytes` bounds it, bytes.
   * @default true, with 64 MiB
   */
  cache?: boolean | { maxBytes?: number };
}

const coding = choice(CONTENT_CODINGS, { default: 'gzip' });
const codings = list<ContentCoding>(coding, {
  default: supportedCodings,
  what: `a list of ${CONTENT_CODINGS.map((name) => `\`"${name}"\``).join(', ')} with at least one entry`,
});
const encodings: Option<readonly ContentCoding[]> = {
  expected: codings.expected,
  read(value, path) {
    const read = codings.read(value, path);
    if (read === supportedCodings) return read;
    if (read.length === 0) {
      throw optionError(path, codings.expected, value, 'To send everything unencoded, set `compression: false`.');
    }
    // A list written for a newer Node still serves with the rest of its codings.
    const usable = [...new Set(read)].filter((name) => supportedCodings.includes(name));
    if (usable.length > 0) return Object.freeze(usable);
    throw optionError(path, `a list with one of ${supportedCodings.join(', ')}`, value, `This Node has no zstd.`);
  },
};

/**
 * Range of each coding's levels, the highest that is safe for bodies made per request, and the cost above it: CPU of one 3 MB JSON body
 * on one core. Zstd ends at 19: windows above it may exceed the 8 MB that clients must accept (RFC 9659).
 */
export const LEVEL_LIMITS = {
  zstd: { min: 1, safe: 12, max: 19, cost: 'zstd 19 takes 2.3 s of CPU for one 3 MB body where zstd 3 takes 20 ms' },
  br: { min: 0, safe: 6, max: 11, cost: 'brotli 11 takes 8.3 s of CPU for one 3 MB body where brotli 4 takes 61 ms' },
  gzip: { min: 1, safe: 7, max: 9, cost: 'gzip 9 takes 27 % more CPU than gzip 6 for 3 % fewer bytes' },
} as const;

const level = (name: keyof typeof LEVEL_LIMITS): Option<number | null> => {
  const { min, max } = LEVEL_LIMITS[name];
  return optionalNumber({ unit: `a whole number`, min, max, integer: true });
};

const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024;

/** The `compression` row of the option table, without the check across its options. */
const row = feature({
  thresholdBytes: bytes({ default: 1024, min: 0 }),
  encodings,
  levels: object({ zstd: level('zstd'), br: level('br'), gzip: level('gzip') }),
  allowSlowLevels: boolean({ default: false }),
  cache: feature({ maxBytes: bytes({ default: DEFAULT_CACHE_BYTES }) }),
});

/** The resolved options; null when the feature is off. */
export type ResolvedCompression = NonNullable<Resolved<typeof row>>;

/** The `compression` row of the option table. Slow levels stop the boot unless they are allowed. */
export const compressionOption: typeof row = {
  expected: row.expected,
  read(value, path) {
    const options = row.read(value, path);
    if (options === null || options.allowSlowLevels) return options;
    for (const name of ['zstd', 'br', 'gzip'] as const) {
      const { safe, cost } = LEVEL_LIMITS[name];
      const level = options.levels[name] ?? 0;
      if (level <= safe) continue;
      throw optionError(
        `${path}.levels.${name}`,
        `at most ${safe} for bodies that are made for each request`,
        level,
        `The cost: ${cost}. Lower it, or set \`compression.allowSlowLevels: true\` if such bodies are made rarely.`,
      );
    }
    return options;
  },
};

/** Size of the cache for shared responses when the content cache is off, bytes. */
export const SHARED_ONLY_BYTES = DEFAULT_CACHE_BYTES;
