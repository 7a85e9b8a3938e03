import { EXPERIMENT_ANSWERS } from '../core/experiment-answers.js';
import { reasonOf } from '../core/reason.js';
import { REJECTED, type Rejected } from '../core/rejected.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { RequestLifecycle } from '../http/lifecycle.js';
import type { ExperimentRow } from './view.js';

const AGE_MS = 30_000;
const MAX_ROWS = 30;

/** What takes too long for a poll: answers of experiments; rejects, which may be on a disk. Made anew after a poll, now and then. */
export class SlowFigures {
  experiments: ExperimentRow[] = [];
  rejected: Rejected[] = [];
  private refreshedAtMs = -Infinity;
  private refreshing = false;

  constructor(
    private readonly requests: RequestLifecycle,
    private readonly report: OncePerCause,
    private readonly nowMs: () => number,
  ) {}

  /** Returns at once. */
  refresh(): void {
    if (this.refreshing || this.nowMs() - this.refreshedAtMs < AGE_MS) return;
    this.refreshing = true;
    inRootContext(() => setImmediate(() => void this.refreshNow()));
  }

  private async refreshNow(): Promise<void> {
    try {
      const list = REJECTED.get(this.requests);
      const rejected = list === null ? [] : await list();
      this.rejected = rejected
        .slice(-MAX_ROWS)
        .map(({ id, name, error, rejectedAt }) => ({ id, name, error: error.slice(0, 300), rejectedAt }));
      this.experiments = await this.answers();
    } catch (error) {
      const cause = `the dashboard could not read experiments or rejects: ${reasonOf(error)}`;
      this.report.report(cause, `${cause}. It shows them as they were.`);
    } finally {
      this.refreshing = false;
      this.refreshedAtMs = this.nowMs();
    }
  }

  /** One gate a turn of the event loop: each takes milliseconds. */
  private async answers(): Promise<ExperimentRow[]> {
    const source = EXPERIMENT_ANSWERS.get(this.requests);
    if (source === null) return [];
    const rows: ExperimentRow[] = [];
    for (const gate of source.gates().slice(0, MAX_ROWS)) {
      const { text, caveats, comparison } = source.answer(gate);
      const ci = comparison?.ci ?? null;
      rows.push({
        gate,
        text,
        caveats,
        relativeDelta: comparison?.relativeDelta ?? null,
        ci: ci?.every(Number.isFinite) === true ? ci : null,
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
    return rows;
  }
}
