import type { RequestState } from '../core/request-state.js';
import type { RecordHold } from '../core/record-hold.js';
import type { Standstill } from './loop-watch.js';

/** The watchdog's and the garbage collector's figures of a standstill arrive some turns after it. */
const SETTLE_MS = 30;
const MORE_POLLS = 2;
/** A record waits no longer than this for a verdict. */
const DEADLINE_MS = 200;
const MAX_PENDING = 100;

/** A standstill that is not judged yet. */
export interface PendingBlock {
  readonly standstill: Standstill;
  /** In flight when it ended. */
  readonly inFlight: readonly RequestState[];
  /** Came in the first turns after it: they were waiting in the socket. */
  readonly queued: RequestState[];
}

/** Standstills between their end and their verdict, and the request records that must wait for it. */
export class PendingBlocks<T extends PendingBlock> implements RecordHold {
  private readonly blocks: T[] = [];
  private held: { state: RequestState; release: (state: RequestState) => void }[] = [];
  private waiters: (() => void)[] = [];
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly nowMs: () => number,
    /** The watchdog's polls so far; null when there is no watchdog to wait for. */
    private readonly polls: () => number | null,
    private readonly judge: (block: T) => void,
  ) {}

  add(block: T): void {
    if (this.blocks.length >= MAX_PENDING) this.judgeOldest();
    this.blocks.push(block);
    this.timer ??= setTimeout(this.look, SETTLE_MS).unref();
  }

  /** The block whose end was last; null when all are judged. */
  get newest(): T | null {
    return this.blocks.at(-1) ?? null;
  }

  hold(state: RequestState, release: (state: RequestState) => void): boolean {
    if (this.blocks.length === 0 || !this.blocks.some((block) => block.standstill.endMs > state.startedMs))
      return false;
    this.held.push({ state, release });
    return true;
  }

  /** Resolves when every standstill so far is judged. */
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

  private readonly look = (): void => {
    this.timer = null;
    const nowMs = this.nowMs();
    const polls = this.polls();
    while (this.blocks.length > 0) {
      const { standstill } = this.blocks[0]!;
      const ageMs = nowMs - standstill.endMs;
      const ready = ageMs >= SETTLE_MS && (polls === null || polls - standstill.polls >= MORE_POLLS);
      if (!ready && ageMs < DEADLINE_MS) break;
      this.judgeOldest();
    }
    this.releaseHeld();
    if (this.blocks.length > 0) this.timer = setTimeout(this.look, SETTLE_MS / 3).unref();
  };

  private judgeOldest(): void {
    this.judge(this.blocks.shift()!);
  }

  private releaseHeld(): void {
    const held = this.held;
    this.held = [];
    for (const { state, release } of held) if (!this.hold(state, release)) release(state);
    if (this.blocks.length > 0) return;
    const waiters = this.waiters;
    this.waiters = [];
    for (const wake of waiters) wake();
  }
}
