import type { RecordHold } from '../ports/record-hold.js';
import type { RequestState } from '../request/request-state.js';
import { inRootContext } from '../core/root-context.js';
import type { Block } from './loop-watch.js';
import type { Sample } from './sample.js';

/** A block is classified so long after its end: lost time and garbage collections become known some turns later. */
const SETTLE_MS = 100;

/** A block with what its classification needs, as of its end. */
export interface SeenBlock {
  readonly block: Block;
  readonly inFlight: readonly RequestState[];
  readonly samples: readonly Sample[];
}

interface PendingBlock {
  readonly seen: SeenBlock;
  readonly timer: NodeJS.Timeout;
  /** Run in their order when the block has been classified. */
  readonly waiting: (() => void)[];
}

/** Blocks between their end and their classification, and the request records that must wait for it. */
export class PendingBlocks implements RecordHold {
  /** In the order in which they have ended, and are classified. */
  private readonly blocks = new Set<PendingBlock>();

  constructor(
    private readonly classify: (seen: SeenBlock) => void,
    /** Called when a classification or a record failed: each runs in a timer, where an error would end the process. */
    private readonly failed: (error: unknown) => void,
  ) {}

  add(seen: SeenBlock): void {
    const timer = inRootContext(() => setTimeout(() => this.settle(pending), SETTLE_MS).unref());
    const pending = { seen, timer, waiting: [] };
    this.blocks.add(pending);
  }

  /** Waits for the last block that the request overlaps; false: for none. */
  hold(state: RequestState, release: (state: RequestState) => void): boolean {
    if (this.blocks.size === 0) return false;
    const { startedMs, endedMs } = state;
    const last = [...this.blocks].findLast(({ seen: { block } }) => block.endMs > startedMs && block.startMs < endedMs);
    if (last === undefined) return false;
    last.waiting.push(() => {
      if (!this.hold(state, release)) release(state);
    });
    return true;
  }

  async settled(): Promise<void> {
    const last = [...this.blocks].at(-1);
    if (last !== undefined) await new Promise<void>((resolve) => last.waiting.push(resolve));
  }

  close(): void {
    for (const pending of this.blocks) this.settle(pending);
  }

  private settle(pending: PendingBlock): void {
    clearTimeout(pending.timer);
    this.blocks.delete(pending);
    for (const work of [() => this.classify(pending.seen), ...pending.waiting]) {
      try {
        work();
      } catch (error) {
        this.failed(error);
      }
    }
  }
}
