import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { HISTORY } from '../core/history.js';
import { LATENCY_FIGURES } from '../core/latency-figures.js';
import type { Resolved } from '../core/option.js';
import { reasonOf } from '../core/reason.js';
import { inRootContext } from '../core/root-context.js';
import { ROUTE_TIME_FIGURES } from '../core/route-time.js';
import { SCHEDULING } from '../core/scheduling.js';
import { USERS } from '../core/users.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import { History } from './history.js';
import { historyOption } from './history.options.js';
import type { HistoryStore } from './history-store.js';
import { MINUTE_MS, WINDOW_MS } from './rows/tiers.js';
import { VerdictKeeper } from './verdicts/verdict-keeper.js';

type Options = NonNullable<Resolved<typeof historyOption>>;

/** What was, kept once a minute from what other features count anyway. */
class HistoryFeature implements Feature {
  private readonly history: History;
  private readonly store: HistoryStore | null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    options: Options,
    private readonly host: FeatureHost,
  ) {
    this.store = options.store;
    const { requests, recorder, report, release } = host;
    const pod = hostname();
    const own = {
      pod,
      instance: `${pod}/${process.pid}/${randomBytes(6).toString('hex')}`,
      release: (release ?? '').slice(0, 200),
    };
    const judge = new VerdictKeeper({
      own,
      shared: options.store?.shared === true,
      usersOf: (route) => USERS.get(requests)?.('totalMs', route, 2 * WINDOW_MS) ?? [],
      tell: (verdict) => {
        if (recorder.wanted) recorder.push({ kind: 'verdict', verdict });
      },
      failed: this.failed,
    });
    const counters = () => ({
      latency: LATENCY_FIGURES.get(requests),
      times: ROUTE_TIME_FIGURES.get(requests),
      scheduling: SCHEDULING.get(requests),
    });
    const parts = { ...options, own, counters, report, now: () => Date.now() };
    this.history = new History(parts, options.verdicts ? judge : null);
    HISTORY.set(requests, this.history);
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

  async drain(): Promise<void> {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
    await inRootContext(() => this.history.close(this.host.flushTimeoutMs));
  }

  /** Until the next full minute. */
  private wait(): void {
    this.timer = setTimeout(
      () => {
        this.wait();
        this.history.tick().catch(this.failed);
      },
      MINUTE_MS - (Date.now() % MINUTE_MS),
    ).unref();
  }

  private readonly failed = (error: unknown): void => {
    const cause = `history failed: ${reasonOf(error)}`;
    this.host.report.report(cause, `${cause}. Requests are not affected; the next minute is kept again.`);
  };
}

export const historyFeature: FeatureDefinition<'history', Options> = {
  name: 'history',
  title: 'history',
  observes: 'process',
  option: historyOption,
  create: (options, host) => (options === null ? {} : new HistoryFeature(options, host)),
};
