import { attach } from './attachment.js';

/** What the kernel gives this process of CPU, for who sizes by it. Unknown is null. */
export interface CpuAllowance {
  /** The container's limit, what it has requested, and the CPUs that the process may run on. */
  cores(): { limit: number | null; request: number | null; machine: number | null };
  /** Milliseconds for which the limit has held the process back so far. Costs a few tenths of a millisecond. */
  throttledMs(): number | null;
}

/** An application's; with `resources: false` too. */
export const CPU_ALLOWANCE = attach<CpuAllowance>('application');
