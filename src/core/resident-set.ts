/** Resident memory of this process, bytes; its maximum where no descriptor is left for Node's read of `/proc`. */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1_024;
  }
}
