import type { RecordHold } from '../ports/record-hold.js';
import type { RequestState } from '../request/request-state.js';
import { inRootContext } from '../core/root-context.js';
import type { Block } from './loop-watch.js';
import type { Sample } from './sample.js';

/** The figures of the sampler's thread and of the garbage collector arrive some turns after a block. */
const SETTLE_MS = 100;
const MAX_PENDING = 100;

export interface SeenBlock {
  readonly block: Block;
  readonly inFlight: readonly RequestState[];
  readonly samples: readonly Sample[];
}

/** Blocks between their end and their classification, and the request records that must wait for it. */
export class PendingBlocks implements RecordHold {
  private readonly blocks: SeenBlock[] = [];
  private held: { state: RequestState; release: (state: RequestState) => void }[] = [];
  private waiters: (() => void)[] = [];
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly nowMs: () => number,
    private readonly judge: (seen: SeenBlock) => void,
    /** Called when a classification or a record failed: each runs in a timer, where an error would end the process. */
    private readonly failed: (error: unknown) => void,
  ) {}

  add(seen: SeenBlock): void {
    if (this.blocks.length >= MAX_PENDING) this.judgeOldest();
    this.blocks.push(seen);
    if (this.timer === null) this.settleIn(SETTLE_MS);
  }

  hold(state: RequestState, release: (state: RequestState) => void): boolean {
    const { startedMs, endedMs } = state;
    if (!this.blocks.some(({ block }) => block.endMs > startedMs && block.startMs < endedMs)) return false;
    this.held.push({ state, release });
    return true;
  }

  async settled(): Promise<void> {
    if (this.blocks.length === 0) return;
    await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  close(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (this.blocks.length > 0) this.judgeOldest();
    this.releaseHeld();
  }

  private settleIn(ms: number): void {
    this.timer = inRootContext(() => setTimeout(this.settle, ms).unref());
  }

  private readonly settle = (): void => {
    this.timer = null;
    const endedMs = this.nowMs() - SETTLE_MS;
    while (this.blocks.length > 0 && this.blocks[0]!.block.endMs <= endedMs) this.judgeOldest();
    this.releaseHeld();
    const [next] = this.blocks;
    if (next !== undefined) this.settleIn(Math.max(1, next.block.endMs - endedMs));
  };

  private judgeOldest(): void {
    const oldest = this.blocks.shift()!;
    this.guard(() => this.judge(oldest));
  }

  private releaseHeld(): void {
    const { held } = this;
    this.held = [];
    for (const { state, release } of held) if (!this.hold(state, release)) this.guard(() => release(state));
    if (this.blocks.length > 0) return;
    for (const wake of this.waiters.splice(0)) wake();
  }

  private guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.failed(error);
    }
  }
}
