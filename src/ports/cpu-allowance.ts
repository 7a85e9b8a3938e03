/** What the kernel gives this process of CPU, for who sizes by it. Unknown is null. */
export abstract class CpuAllowance {
  /** The container's limit, what it has requested, and the CPUs that the process may run on. */
  abstract cores(): { limit: number | null; request: number | null; machine: number | null };
  /** Milliseconds for which the limit has held the process back so far. Costs a few tenths of a millisecond. */
  abstract throttledMs(): number | null;
}
