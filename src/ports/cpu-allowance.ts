/** The CPU that the kernel allows this process, for features that size by it. Null where it is unknown. */
export abstract class CpuAllowance {
  /** The container's limit, what it has requested, and the CPUs that the process may run on. */
  abstract cores(): { limit: number | null; request: number | null; machine: number | null };
  /** Milliseconds for which the limit has throttled the process so far, as of the last second. */
  abstract throttledMs(): number | null;
}
