import { attach } from './attachment.js';
import type { PerfSnapshot } from './snapshot.js';

/** One step of what was. */
export interface PastPoint {
  /** When it begins, epoch milliseconds. */
  readonly at: number;
  readonly count: number;
  readonly errors: number;
  readonly durationMs: { readonly p50: number; readonly p95: number; readonly p99: number };
}

/** Who keeps what was. */
export interface Past {
  history(range: {
    from: number;
    to: number;
    stepMs: number;
  }): Promise<{ readonly stepMs: number; readonly points: readonly PastPoint[] }>;
  verdicts(): readonly {
    readonly kind: 'worse' | 'better';
    readonly state: 'active' | 'resolved';
    readonly text: string;
  }[];
}

/** What the composition root can tell of the whole application. */
export interface Overview {
  snapshot(): PerfSnapshot;
  /** What keeps the process from doing its work, in words; empty when nothing does. */
  reasons(snapshot: PerfSnapshot): readonly string[];
  /** Null where nobody keeps a history. */
  past(): Past | null;
}

/** An application's. Set before any feature is installed. */
export const OVERVIEW = attach<Overview>('application');
