/**
 * Resident memory of this process, bytes. Node opens a file of `/proc` for it: without a descriptor that is left, or without `/proc`,
 * it is the most that it has ever been.
 */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1_024;
  }
}
