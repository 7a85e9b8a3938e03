import type { ServerResponse } from 'node:http';
import { constants } from 'node:zlib';
import type { Encoder } from './codec.js';
import type { Given, Sending } from './held-head.js';

/** Longest time that written bytes stay in the encoder, milliseconds: slow exports arrive line by line. */
const FLUSH_MS = 20;

/**
 * Zlib's default is a full flush, which resets the dictionary: gzip would save nothing on lines that arrive slowly. The same number
 * means a flush to Brotli and zstd.
 */
const FLUSH = constants.Z_PARTIAL_FLUSH;

/** A response that passes through an encoder. Calls `done` once: with null when all is written. */
export class EncodedStream {
  private timer: NodeJS.Timeout | null = null;
  private ended = false;
  bytesOut = 0;

  constructor(
    private readonly encoder: Encoder,
    response: ServerResponse,
    /** Node's own `write`. Sockets of function platforms return nothing, and emit no `drain`. */
    write: (chunk: Buffer) => boolean | undefined,
    done: (error: Error | null) => void,
  ) {
    encoder.on('data', (chunk: Buffer) => {
      this.bytesOut += chunk.byteLength;
      if (write(chunk) === false) encoder.pause();
    });
    response.on('drain', () => encoder.resume());
    // Node emits `drain` for encoded bytes only.
    encoder.on('drain', () => this.ended || response.emit('drain'));
    encoder.once('end', () => done(null));
    encoder.once('error', done);
    response.once('close', () => {
      clearTimeout(this.timer ?? undefined);
      encoder.destroy();
    });
  }

  get bytesIn(): number {
    return this.encoder.bytesWritten;
  }

  get needsDrain(): boolean {
    return this.encoder.writableNeedDrain;
  }

  write(...given: Given): boolean {
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS).unref();
    return (this.encoder as unknown as Sending).write(...given);
  }

  /** The encoder refuses an invalid chunk, as Node does. */
  end(chunk: unknown, encoding: unknown): void {
    this.ended = true;
    if (chunk === undefined || chunk === null || typeof chunk === 'function') this.encoder.end();
    else this.encoder.end(chunk, (typeof encoding === 'string' ? encoding : undefined) as BufferEncoding);
  }

  private flush(): void {
    this.timer = null;
    if (!this.encoder.writableEnded && !this.encoder.destroyed) this.encoder.flush(FLUSH);
  }
}
