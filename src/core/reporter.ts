import { printable } from './printable.js';
import { inRootContext } from './root-context.js';

/** Reasons in a message may quote clients. Longer than any message of ours. */
const MAX_LENGTH = 2_000;

/** Logs what happened to the library itself. The module wires it to Nest's `Logger`. */
export interface Reporter {
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Writes one printable line a message. Never throws: an error of the application's logger in one of our timers would end the process. */
export function safeReporter(reporter: Reporter): Reporter {
  const write =
    (level: keyof Reporter) =>
    (message: string): void => {
      try {
        reporter[level](printable(message, MAX_LENGTH));
      } catch {
        // No other logger is left.
      }
    };
  return { log: write('log'), warn: write('warn'), error: write('error') };
}

/** Between two lines of one cause. */
const REPEAT_MS = 60_000;
/** A cause that was not met for so long makes room for others. */
const FORGOTTEN_MS = 10 * 60_000;
/** Ports, durations and ids: a text that differs in them alone is of the same cause. */
const NUMBERS = /\d{2,}|\b[0-9a-f-]{16,}\b/g;

interface Met {
  unreported: number;
  reportedAtMs: number;
  lastMs: number;
}

/** Logs each cause once, at once, and counts its repeats: one line with their number after a minute or on `flush()`. */
export class OncePerCause {
  private readonly counts = new Map<string, Met>();

  constructor(
    private readonly reporter: Reporter,
    private readonly nowMs: () => number,
    /** Causes beyond this number share one line, so that hostile causes cannot grow memory. */
    private readonly maxCauses = 100,
  ) {}

  /** `count` is how many things were lost or went wrong this time. */
  report(cause: string, message: string, count = 1): void {
    const now = this.nowMs();
    const key = this.findKey(cause.replaceAll(NUMBERS, '…'), now);
    const seen = this.counts.get(key);
    if (seen === undefined) {
      this.counts.set(key, { unreported: 0, reportedAtMs: now, lastMs: now });
      this.warn(printable(message, MAX_LENGTH));
      return;
    }
    seen.lastMs = now;
    seen.unreported += count;
    if (now - seen.reportedAtMs >= REPEAT_MS) this.writeCount(key, seen, now);
  }

  private findKey(cause: string, now: number): string {
    const { counts, maxCauses } = this;
    if (counts.has(cause) || counts.size < maxCauses) return cause;
    for (const [known, { lastMs, unreported }] of counts)
      if (unreported === 0 && now - lastMs >= FORGOTTEN_MS) counts.delete(known);
    return counts.size < maxCauses ? cause : 'other causes';
  }

  /** Reports the numbers that are still unsaid. */
  flush(): void {
    const now = this.nowMs();
    for (const [cause, seen] of this.counts) if (seen.unreported > 0) this.writeCount(cause, seen, now);
  }

  private writeCount(cause: string, seen: Met, now: number): void {
    this.warn(`${printable(cause, MAX_LENGTH)}: ${seen.unreported} more since it was last reported.`);
    seen.unreported = 0;
    seen.reportedAtMs = now;
  }

  /** A cause may be met within a request, whose id a logger would put on the line. */
  private warn(message: string): void {
    inRootContext(() => this.reporter.warn(message));
  }
}
