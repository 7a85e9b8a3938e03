import { attach } from './attachment.js';
import type { HistoryReader } from './history.js';
import type { PerfSnapshot } from './snapshot.js';
import type { Steps } from './turns.js';

/** What the composition root can tell of the whole application. */
export interface Overview {
  snapshot(): Steps<PerfSnapshot>;
  /** What keeps the process from doing its work, in words; empty when nothing does. */
  reasons(snapshot: PerfSnapshot): readonly string[];
  past(): Pick<HistoryReader, 'history' | 'verdicts' | 'releases' | 'countsSince'> | null;
}

/** An application's. Set before any feature is installed. */
export const OVERVIEW = attach<Overview>('application');
