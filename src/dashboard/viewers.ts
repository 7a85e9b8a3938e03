const MAX_VIEWERS = 8;
/** Longer than pages wait between two polls, hidden ones too. */
const GONE_AFTER_MS = 30_000;
const MAX_NAME_LENGTH = 40;

/** Viewers, by the name that each page gives itself. The page must not become the load. */
export class Viewers {
  private readonly seenAtMs = new Map<string, number>();

  constructor(private readonly nowMs: () => number) {}

  /** False when there are too many others. */
  admits(name: string): boolean {
    const now = this.nowMs();
    for (const [other, at] of this.seenAtMs) if (now - at > GONE_AFTER_MS) this.seenAtMs.delete(other);
    const short = name.slice(0, MAX_NAME_LENGTH);
    if (!this.seenAtMs.has(short) && this.seenAtMs.size >= MAX_VIEWERS) return false;
    this.seenAtMs.set(short, now);
    return true;
  }
}
