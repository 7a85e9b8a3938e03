import type { RecordHold } from '../ports/record-hold.js';
import type { RequestState } from '../request/request-state.js';
import { inRootContext } from '../core/root-context.js';
import type { Block } from './loop-watch.js';

/** The figures of the sampler's thread and of the garbage collector arrive some turns after a block. */
const SETTLE_MS = 30;
const MORE_POLLS = 2;
/** A record waits no longer than this for a classification. */
const DEADLINE_MS = 200;
const MAX_PENDING = 100;

/** Blocks between their end and their classification, and the request records that must wait for it. */
export class PendingBlocks<T extends { readonly block: Block }> implements RecordHold {
  private readonly blocks: T[] = [];
  private held: { state: RequestState; release: (state: RequestState) => void }[] = [];
  private waiters: (() => void)[] = [];
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly nowMs: () => number,
    /** The sampler's polls so far; null when no sampler runs. */
    private readonly polls: () => number | null,
    private readonly judge: (block: T) => void,
    /** Called when a classification or a record failed: each runs in a timer, where an error would end the process. */
    private readonly failed: (error: unknown) => void,
  ) {}

  add(block: T): void {
    if (this.blocks.length >= MAX_PENDING) this.judgeOldest();
    this.blocks.push(block);
    if (this.timer === null) this.settleIn(SETTLE_MS);
  }

  hold(state: RequestState, release: (state: RequestState) => void): boolean {
    if (!this.blocks.some(({ block }) => block.endMs > state.startedMs)) return false;
    this.held.push({ state, release });
    return true;
  }

  /** Resolves when every block so far is judged. */
  async settled(): Promise<void> {
    if (this.blocks.length === 0) return;
    await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  /** Judges what is left at once. */
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
    const nowMs = this.nowMs();
    const polls = this.polls();
    while (this.blocks.length > 0) {
      const { block } = this.blocks[0]!;
      const ageMs = nowMs - block.endMs;
      const ready = ageMs >= SETTLE_MS && (polls === null || polls - block.polls >= MORE_POLLS);
      if (!ready && ageMs < DEADLINE_MS) break;
      this.judgeOldest();
    }
    this.releaseHeld();
    if (this.blocks.length > 0) this.settleIn(SETTLE_MS / 3);
  };

  private judgeOldest(): void {
    const oldest = this.blocks.shift()!;
    this.guarded(() => this.judge(oldest));
  }

  private releaseHeld(): void {
    const { held } = this;
    this.held = [];
    for (const { state, release } of held) if (!this.hold(state, release)) this.guarded(() => release(state));
    if (this.blocks.length > 0) return;
    const { waiters } = this;
    this.waiters = [];
    for (const wake of waiters) wake();
  }

  private guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.failed(error);
    }
  }
}
