/**
 * Milliseconds to wait after so many failures: exponential from `baseMs` up to `maxMs`, with full jitter, so that those who
 * failed together do not come back together. https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 */
export function backoffMs(
  failures: number,
  { baseMs, maxMs }: { readonly baseMs: number; readonly maxMs: number },
  random: () => number = Math.random,
): number {
  return random() * Math.min(maxMs, baseMs * 2 ** (failures - 1));
}
