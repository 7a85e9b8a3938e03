/** Rejects that are held in memory: older ones make room for newer ones. */
const MAX_IN_MEMORY = 1_000;

export const FULL_OF_REJECTS = `more than ${MAX_IN_MEMORY} pieces of deferred work were refused`;

/** Work that its queue or store has refused for good. */
export interface RejectedWork {
  readonly id: string;
  /** As in records. */
  readonly name: string;
  readonly data: unknown;
  /** What the queue or store has said last. */
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

interface Held {
  readonly work: RejectedWork;
  /** Takes it over anew; false when there is no room. */
  readonly again: () => boolean;
}

/** What was refused and is on no disk: kept until somebody looks, to be read and sent again. */
export class Rejects {
  private held = new Map<string, Held>();

  /** @returns the name of one that had to go for it, or null */
  add(work: RejectedWork, again: () => boolean): string | null {
    this.held.set(work.id, { work, again });
    if (this.held.size <= MAX_IN_MEMORY) return null;
    const [[id, oldest]] = this.held as unknown as [[string, Held]];
    this.held.delete(id);
    return oldest.work.name;
  }

  list(): RejectedWork[] {
    return [...this.held.values()].map(({ work }) => work);
  }

  /** Sends those with these ids again, all without ids; returns how many there was room for. */
  resend(ids: readonly string[] | undefined): number {
    let sent = 0;
    for (const [id, { again }] of this.held) {
      if (ids?.includes(id) === false) continue;
      if (!again()) break;
      this.held.delete(id);
      sent += 1;
    }
    return sent;
  }
}
