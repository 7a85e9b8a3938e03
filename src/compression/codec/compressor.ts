import { compress, compressNow } from './codec.js';
import type { ContentCoding } from '../rules/content-coding.js';
import type { Governor } from './governor.js';
import { levelFor, type Effort, type Levels } from './level.js';

/** An encoded body and the level it was made at. */
export interface Encoded {
  readonly bytes: Buffer;
  readonly level: number;
}

/** Up to here a body is compressed on the event loop (0.1 to 0.3 ms): a pool round trip would cost more. */
const MAX_BYTES_NOW = 16 * 1024;
/** The levels for which that holds. */
const NO_CHOICE: Levels = { zstd: null, br: null, gzip: null };

/** Compresses whole bodies: small ones at once, others on the thread pool as far as the governor lets them. */
export class Compressor {
  constructor(
    private readonly levels: Levels,
    private readonly governor: Governor,
  ) {}

  /** Whether there is room for work that nobody waits for. */
  get idle(): boolean {
    return !this.governor.full;
  }

  levelFor(coding: ContentCoding, byteLength: number, effort: Effort): number {
    return levelFor(coding, byteLength, effort, this.levels);
  }

  /** The effort for a stream, which takes no slot: it may last as long as its client is slow. */
  get streamEffort(): Effort {
    return this.governor.full ? 'hurried' : 'once';
  }

  /**
   * The encoded body, or null where it would not be smaller. Synchronous when it can be; with the pool full the body
   * waits and gets the cheapest level, and is left alone when `wanted` says that its client has gone meanwhile.
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
    return this.encodeOnPool(coding, body, effort, wanted);
  }

  private encodeOnPool(
    coding: ContentCoding,
    body: Uint8Array,
    effort: Effort,
    wanted: () => boolean,
  ): Promise<Encoded | null> {
    const level = this.levelFor(coding, body.byteLength, this.governor.full ? 'hurried' : effort);
    return this.governor.run(async () => (wanted() ? smaller(await compress(coding, body, level), body, level) : null));
  }
}

function smaller(bytes: Buffer, body: Uint8Array, level: number): Encoded | null {
  return bytes.byteLength < body.byteLength ? { bytes, level } : null;
}
