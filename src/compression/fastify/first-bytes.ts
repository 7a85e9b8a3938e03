import type { Readable } from 'node:stream';

/** Waits for a stream's first bytes without taking them. Null for a stream that ends, fails or closes without any. */
export function firstBytes(stream: Readable, done: (first: Uint8Array | null) => void): void {
  const settle = (first: Uint8Array | null): void => {
    stream.off('readable', onReadable);
    stream.off('end', onNothing);
    stream.off('error', onNothing);
    stream.off('close', onNothing);
    done(first);
  };
  const onNothing = (): void => settle(null);
  const onReadable = (): void => {
    const chunk = stream.read() as Uint8Array | string | null;
    if (chunk === null) return;
    stream.unshift(chunk);
    settle(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  };
  if (stream.destroyed || stream.readableEnded) return done(null);
  stream.on('readable', onReadable);
  stream.once('end', onNothing);
  stream.once('error', onNothing);
  stream.once('close', onNothing);
}

/**
 * Whether `@fastify/compress` would take the bytes for a compressed body: it then sends them as they are under the
 * `Content-Encoding` it has announced. Its test for deflate also fits text: everything that begins with `80`, `(S`,
 * `hb` or `x ` for example. Too few bytes to tell count as yes.
 */
export function looksCompressed(bytes: Uint8Array): boolean {
  const [first, second, third] = bytes;
  if (first === undefined || second === undefined || third === undefined) return true;
  if (first === 0x1f && second === 0x8b && third === 0x08) return true;
  return (first & 0x0f) === 8 && (first & 0x80) === 0 && ((first << 8) + second) % 31 === 0;
}
