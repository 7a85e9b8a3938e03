/** A copy in memory of its own: what is kept for long must not keep Node's pool, or a larger buffer, with it. */
export function unpooled(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.byteLength);
  copy.set(bytes);
  return copy;
}
