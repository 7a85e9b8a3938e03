import type { TimeRange } from '../core/history.js';
import type { MemoryTiers } from './rows/memory.js';
import type { Tier } from './rows/tiers.js';
import { EncodedWindow } from './rows/window-codec.js';
import type { StoreKeeper } from './store-keeper.js';
import { Turns } from '../core/turns.js';

/** A bucket of one process. */
export interface ReadBucket {
  readonly at: number;
  readonly pod: string;
  readonly instance: string;
  readonly release: string;
  readonly window: EncodedWindow;
}

/** This run of this process. */
export interface Identity {
  readonly pod: string;
  readonly instance: string;
  readonly release: string;
}

/** Everything that is known of a range: what memory holds of this process, and what the store holds of it and of others. */
export class HistorySource {
  constructor(
    private readonly memory: Pick<MemoryTiers, 'has'>,
    /** Of {@link memory}, when nobody changes it. */
    private readonly bucketsOf: (tier: Tier, range: TimeRange) => Promise<{ at: number; window: EncodedWindow }[]>,
    private readonly store: StoreKeeper | null,
    private readonly own: Identity,
  ) {}

  /** Hands on every bucket that begins in the range; false when the store could not be read. Without the store, only this run's. */
  async read(tier: Tier, range: TimeRange, take: (bucket: ReadBucket) => void, withStore = true): Promise<boolean> {
    const { memory, own } = this;
    const turns = new Turns();
    for (const { at, window } of await this.bucketsOf(tier, range)) {
      take({ ...own, at, window });
      await turns.rest();
    }
    if (this.store === null || !withStore) return true;
    return this.store.read(tier, range, async ({ at, pod, instance, release, data }) => {
      if (instance === own.instance && memory.has(tier, at)) return;
      unlessUnreadable(() => take({ at, pod, instance, release, window: new EncodedWindow(data) }));
      await turns.rest();
    });
  }
}

/** A row's checksum does not say who wrote it: one that cannot be decoded is left out. */
function unlessUnreadable(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}
