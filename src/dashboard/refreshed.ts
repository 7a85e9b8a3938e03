import { setTimeout as delay } from 'node:timers/promises';
import { describeReason } from '../core/reason.js';
import { inRootContext } from '../core/root-context.js';
import type { PerfApplication } from '../request/application.js';

const MIN_AGE_MS = 2_000;
const MAX_AGE_MS = 30_000;
/** Making takes at most so small a part of the time. */
const PAUSES_OF_COST = 40;
/** A store that hangs must not keep the page. */
const LONGEST_WAIT_MS = 2_000;

/** A value that takes too long for a poll: made anew beside polls, when it is read and old. A failure leaves it as it was. */
export class Refreshed<T> {
  private oldAtMs = -Infinity;
  private making: Promise<void> | null = null;

  constructor(
    private readonly host: Pick<PerfApplication, 'report' | 'nowMs'>,
    /** In words, for the log: `'the history'` */
    private readonly what: string,
    private value: T,
    private readonly make: () => Promise<T>,
  ) {}

  /** The value, which may be half a minute old; waits for an older one, and with `isYoung` for each. */
  async read(isYoung = false): Promise<T> {
    if (this.making === null && this.host.nowMs() >= this.oldAtMs) this.making = inRootContext(() => this.makeAnew());
    if (this.making !== null && (isYoung || this.host.nowMs() >= this.oldAtMs + MAX_AGE_MS))
      await Promise.race([this.making, delay(LONGEST_WAIT_MS, undefined, { ref: false })]);
    return this.value;
  }

  private async makeAnew(): Promise<void> {
    const { nowMs } = this.host;
    const startedMs = nowMs();
    try {
      // The poll's turn is over by then.
      await new Promise((resolve) => setImmediate(resolve));
      this.value = await this.make();
    } catch (error) {
      const cause = `the dashboard could not read ${this.what}: ${describeReason(error)}`;
      this.host.report.report(cause, `${cause}. It shows what was there before.`);
    } finally {
      this.making = null;
      const tookMs = nowMs() - startedMs;
      this.oldAtMs = nowMs() + Math.min(MAX_AGE_MS, Math.max(MIN_AGE_MS, PAUSES_OF_COST * tookMs));
    }
  }
}
