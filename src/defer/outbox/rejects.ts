/** Rejects that are held in memory, and what their data takes as JSON: older ones make room for newer ones. */
const MAX_IN_MEMORY = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;

/** Work that its queue or store has refused for good. */
export interface RejectedWork {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  /** The last error of the queue or store. */
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

/** Which of them, from the oldest on; a negative offset counts from the newest. */
export interface DeadLetterPage {
  readonly offset: number;
  readonly limit: number;
}

interface Held {
  readonly work: RejectedWork;
  readonly bytes: number;
  readonly again: () => boolean;
}

/** Items that were refused and are on no disk: kept in memory, to be read and sent again. */
export class Rejects {
  private readonly held = new Set<Held>();
  private bytes = 0;

  constructor(private readonly report: (cause: string, message: string) => void) {}

  /** @param again takes it over anew; false when there is no room */
  add(work: RejectedWork, bytes: number, again: () => boolean): void {
    this.held.add({ work, bytes, again });
    this.bytes += bytes;
    while (this.held.size > MAX_IN_MEMORY || (this.bytes > MAX_BYTES && this.held.size > 1)) {
      const [oldest] = this.held;
      this.letGo(oldest!);
      const cause = `more than ${MAX_IN_MEMORY} pieces or 16 MiB of deferred work were refused`;
      this.report(cause, `${cause}: the oldest, "${oldest!.work.name}", was let go.`);
    }
  }

  list({ offset, limit }: DeadLetterPage): RejectedWork[] {
    const all = Array.from(this.held, ({ work }) => work).slice(offset);
    return all.slice(0, limit);
  }

  /** Sends those with these ids again, all without ids; returns how many there was room for. */
  resend(ids: readonly string[] | undefined): number {
    let sent = 0;
    for (const one of this.held) {
      if (ids?.includes(one.work.id) === false) continue;
      if (!one.again()) break;
      this.letGo(one);
      sent += 1;
    }
    return sent;
  }

  private letGo(one: Held): void {
    this.held.delete(one);
    this.bytes -= one.bytes;
  }
}
