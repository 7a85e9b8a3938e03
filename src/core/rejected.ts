import { attach } from './attachment.js';

/** Deferred work that its queue or store has refused for good, without its data. */
export interface Rejected {
  readonly id: string;
  readonly name: string;
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

/** Lists them, oldest first; may read a file. An application's; there is none with `defer: false`. */
export const REJECTED = attach<() => Promise<readonly Rejected[]>>('application');
