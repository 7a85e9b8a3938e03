import { unpooled } from '../../core/unpooled.js';

/** Writes numbers and texts into as few bytes as they need. */
export class ByteWriter {
  private buffer = Buffer.allocUnsafe(4_096);
  private length = 0;

  /** A whole number from 0: seven bits a byte, the lowest first (LEB128). What is no such number is written as the nearest. */
  number(value: number): void {
    let rest = value > 0 ? Math.min(Number.MAX_SAFE_INTEGER, Math.round(value)) : 0;
    this.reserve(8);
    while (rest >= 128) {
      this.buffer[this.length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.buffer[this.length++] = rest;
  }

  /** Milliseconds as microseconds. */
  ms(value: number): void {
    this.number(value * 1_000);
  }

  text(value: string): void {
    this.bytes(Buffer.from(value));
  }

  /** With its length before it. */
  bytes(value: Uint8Array): void {
    this.number(value.length);
    this.reserve(value.length);
    this.buffer.set(value, this.length);
    this.length += value.length;
  }

  /** A copy of what was written. */
  take(): Buffer {
    return unpooled(this.buffer.subarray(0, this.length));
  }

  private reserve(bytes: number): void {
    if (this.length + bytes <= this.buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.buffer.length, this.length + bytes));
    this.buffer.copy(grown, 0, 0, this.length);
    this.buffer = grown;
  }
}

/** Reads what {@link ByteWriter} has written; a RangeError where it ends too early. */
export class ByteReader {
  private offset = 0;

  constructor(private readonly buffer: Uint8Array) {}

  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.buffer[this.offset++];
      if (byte === undefined || factor > Number.MAX_SAFE_INTEGER) throw new RangeError('a history row ends too early');
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  ms(): number {
    return this.number() / 1_000;
  }

  text(): string {
    const bytes = this.bytes();
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  }

  /** A view, no copy. */
  bytes(): Uint8Array {
    const length = this.number();
    const end = this.offset + length;
    if (end > this.buffer.length) throw new RangeError('a history row ends too early');
    const view = this.buffer.subarray(this.offset, end);
    this.offset = end;
    return view;
  }
}
