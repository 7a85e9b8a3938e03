import { availableParallelism } from 'node:os';
import type { ContentCoding } from '../rules/accept-encoding.js';
import { compress, compressNow } from './codec.js';

/** Levels that an application has chosen; a coding without one is chosen by size. */
export type Levels = Readonly<Record<'zstd' | 'br' | 'gzip', number | null>>;

/**
 * Range of each coding's levels, the highest that is safe for bodies made per request, and the cost above it: CPU of one 3 MB JSON body
 * on one core. Zstd ends at 19: windows above it may exceed the 8 MB that clients must accept (RFC 9659).
 */
export const LEVEL_LIMITS = {
  zstd: { min: 1, safe: 12, max: 19, cost: 'zstd 19 takes 2.3 s of CPU for one 3 MB body where zstd 3 takes 20 ms' },
  br: { min: 0, safe: 6, max: 11, cost: 'brotli 11 takes 8.3 s of CPU for one 3 MB body where brotli 4 takes 61 ms' },
  gzip: { min: 1, safe: 7, max: 9, cost: 'gzip 9 takes 27 % more CPU than gzip 6 for 3 % fewer bytes' },
} as const;

/** Purpose of a compression: for its own request, for many requests, or for a request while the thread pool is full. */
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

/**
 * How many compressions may occupy the thread pool: one thread always stays free for files, DNS and crypto, and more
 * than there are cores would only queue inside the kernel.
 */
export function compressionSlots(
  threadPoolSize = threadPoolSizeOf(process.env),
  cores = availableParallelism(),
): number {
  return Math.max(1, Math.min(threadPoolSize - 1, cores));
}

/** libuv's own reading of `UV_THREADPOOL_SIZE`: 4 by default, at least 1, at most 1024. */
export function threadPoolSizeOf(environment: Readonly<Record<string, string | undefined>>): number {
  const given = environment['UV_THREADPOOL_SIZE'];
  if (given === undefined) return 4;
  const size = Number.parseInt(given, 10);
  return Number.isNaN(size) ? 1 : Math.min(Math.max(size, 1), 1024);
}

/**
 * Lets only so many compressions run at once; the others wait in order. Without it, 20 bodies of 3 MB put 30 ms on every
 * `fs.stat` of the process, because they share one pool.
 */
export class Governor {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly slots: number) {}

  /** Whether work that arrives now would wait: it should then be made cheap. */
  get full(): boolean {
    return this.running >= this.slots;
  }

  /** Runs `work` when a slot is free; a failure of it frees the slot too. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.full) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      return await work();
    } finally {
      // The slot is handed over, not given back: a newcomer cannot overtake a waiter.
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }
}

/** An encoded body and the level it was made at. */
export interface Encoded {
  readonly bytes: Buffer;
  readonly level: number;
}

/** Largest body that is compressed on the event loop (0.1 to 0.3 ms), bytes: a pool round trip would cost more. */
const MAX_BYTES_NOW = 16 * 1024;
/** Levels by size, above which no body is compressed on the event loop. */
const NO_CHOICE: Levels = { zstd: null, br: null, gzip: null };

/** Compresses whole bodies: small ones at once, others on the thread pool as far as the governor lets them. */
export class Compressor {
  constructor(
    private readonly levels: Levels,
    private readonly governor: Governor,
  ) {}

  levelFor(coding: ContentCoding, byteLength: number, effort: Effort): number {
    return levelFor(coding, byteLength, effort, this.levels);
  }

  /** A stream takes no slot: it may last as long as its client is slow. */
  levelOfStream(coding: ContentCoding): number {
    return this.levelFor(coding, Number.POSITIVE_INFINITY, this.governor.full ? 'hurried' : 'once');
  }

  /**
   * Returns the encoded body, or null where it would not be smaller. Synchronous when it can be; with the pool full the body
   * waits and gets the cheapest level, or stays unencoded when `wanted` returns false: its client has gone meanwhile.
   */
  encode(
    coding: ContentCoding,
    body: Uint8Array,
    effort: Effort,
    wanted: () => boolean = () => true,
  ): Encoded | null | Promise<Encoded | null> {
    const level = this.levelFor(coding, body.byteLength, effort);
    if (body.byteLength <= MAX_BYTES_NOW && level <= levelFor(coding, 0, 'shared', NO_CHOICE)) {
      return smaller(compressNow(coding, body, level), body, level);
    }
    const affordable = this.levelFor(coding, body.byteLength, this.governor.full ? 'hurried' : effort);
    return this.governor.run(async () =>
      wanted() ? smaller(await compress(coding, body, affordable), body, affordable) : null,
    );
  }
}

function smaller(bytes: Buffer, body: Uint8Array, level: number): Encoded | null {
  return bytes.byteLength < body.byteLength ? { bytes, level } : null;
}
