import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { CpuAllowance } from '../ports/cpu-allowance.js';
import type { LatencyFigures } from '../ports/latency-figures.js';
import { describeReason } from '../core/reason.js';
import { inRootContext } from '../core/root-context.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import type { UserList } from '../ports/users.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature } from '../request/feature.js';
import { History } from './history.js';
import type { ResolvedHistory } from './history.options.js';
import type { HistoryStore } from './history-store.js';
import { MINUTE_MS, WINDOW_MS } from './rows/tiers.js';
import { VerdictKeeper } from './verdicts/verdict-keeper.js';

const MIN_WAIT_MS = 50;

/** The feature of one application: calls `tick()` of its history at each full minute, and closes it. */
export class HistoryKeeper implements Feature {
  readonly history: History;
  private readonly store: HistoryStore | null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    options: ResolvedHistory,
    private readonly host: PerfApplication,
    latency: LatencyFigures | null,
    times: RouteTimeFigures | null,
    cpu: CpuAllowance | null,
    users: UserList | null,
  ) {
    this.store = options.store;
    const { recorder, report, release } = host;
    const pod = hostname();
    const own = {
      pod,
      instance: `${pod}/${process.pid}/${randomBytes(6).toString('hex')}`,
      release: (release ?? '').slice(0, 200),
    };
    const judge = new VerdictKeeper({
      listUsers: (route) => users?.list('totalMs', route, 2 * WINDOW_MS) ?? [],
      report: (verdict) => {
        if (recorder.wanted) recorder.push({ kind: 'verdict', verdict });
      },
      failed: this.failed,
    });
    const counters = () => ({ latency, times, cpu });
    const maxBytes = host.cacheBytes(options.maxBytes);
    const parts = { ...options, maxBytes, own, counters, report, now: () => Date.now() };
    this.history = new History(parts, options.verdicts ? judge : null);
  }

  async install(): Promise<void> {
    await this.store?.load?.();
  }

  start(): void {
    inRootContext(() => {
      this.history.begin();
      this.wait();
    });
  }

  async drain(_drainMs: number, flushMs: number): Promise<void> {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
    await inRootContext(() => this.history.close(flushMs));
  }

  private wait(): void {
    const next = (): void => {
      this.wait();
      this.history.tick().catch(this.failed);
    };
    this.timer = setTimeout(next, msToNextMinute(Date.now())).unref();
  }

  private readonly failed = (error: unknown): void => {
    const cause = `history failed: ${describeReason(error)}`;
    this.host.report.report(cause, `${cause}. Requests are not affected; the next minute is kept again.`);
  };
}

/** At least `MIN_WAIT_MS`: with a wall clock that stands still, as in tests, the timer would spin. */
const msToNextMinute = (nowMs: number): number => Math.max(MIN_WAIT_MS, MINUTE_MS - (nowMs % MINUTE_MS) || MINUTE_MS);
