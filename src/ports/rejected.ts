/** Deferred work that its queue or store has refused for good, without its data. */
export interface Rejected {
  readonly id: string;
  readonly name: string;
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

/** Lists the newest, oldest first; may read a file. Not provided with `defer: false`. */
export abstract class RejectedList {
  abstract rejected(): Promise<readonly Rejected[]>;
}
