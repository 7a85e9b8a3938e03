/** Exponential backoff with full jitter, milliseconds: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
export function backoffMs(
  failures: number,
  { baseMs, maxMs }: { readonly baseMs: number; readonly maxMs: number },
  random: () => number = Math.random,
): number {
  return random() * Math.min(maxMs, baseMs * 2 ** (failures - 1));
}
