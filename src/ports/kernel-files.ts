/** Files of the kernel that another thread has read, with what it knows of the process at that moment. */
export interface KernelTexts {
  /** Monotonic milliseconds of the main thread. */
  readonly atMs: number;
  readonly cpu: NodeJS.CpuUsage;
  readonly rssBytes: number;
  /** `''` for a file that cannot be read. */
  readonly texts: ReadonlyMap<string, string>;
}

/** Reads small files in the sampler's thread. */
export abstract class KernelFiles {
  abstract readonly running: boolean;
  /** Resolves to null when the thread does not answer in time. Never rejects. */
  abstract readFiles(paths: Iterable<string>): Promise<KernelTexts | null>;
}
