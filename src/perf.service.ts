import { Inject, Injectable } from '@nestjs/common';
import { HISTORY, NO_HISTORY } from './core/history.js';
import type { CompareWhat, HistorySeries, PerfComparison, TimeRange } from './core/history.js';
import { describe, object, oneOf, optional, optionError, string } from './core/option.js';
import { contextOff } from './core/perf.error.js';
import type { SizeNote } from './core/record.js';
import type { PerfSnapshot, UserUse } from './core/snapshot.js';
import { NO_RECORDING, RECORDING, type Recording } from './core/recording.js';
import { currentPart } from './core/request-state.js';
import { USERS } from './core/users.js';
import { UPSTREAM_CALLS } from './core/upstream-calls.js';
import type { Verdict } from './core/verdict.js';
import type { PerfHealth } from './perf.health.js';
import { PerfRuntime } from './perf.runtime.js';

/** What is known now, and a way to say how much data a request works on. */
@Injectable()
export class PerfService {
  /** @internal */
  constructor(@Inject(PerfRuntime) private readonly runtime: PerfRuntime) {}

  /** Statistics of all routes and features. Cheap enough for a health page, not for a request's path. */
  snapshot(): PerfSnapshot {
    return this.runtime.snapshot();
  }

  /** Whether loop, CPU, memory and deferred work have room left, and preloaded data is not overdue, for a health check. As cheap as {@link snapshot}. */
  health(): PerfHealth {
    return this.runtime.health();
  }

  /**
   * The heaviest users of the last hour, the heaviest first: by the time that their requests took, or by their number.
   * @example perf.users({ by: 'count', route: 'GET /users/:id' })
   * @throws PERF_ERR_OPTION
   */
  users(options?: { by?: 'totalMs' | 'count'; route?: string }): readonly UserUse[] {
    const read = usersOptions.read(options, 'perf.users() options');
    return USERS.get(this.runtime.requests)?.(read.by, read.route ?? undefined) ?? [];
  }

  /**
   * Records live traffic to a file, for `nestjs-perf-load`; with `extensions: [record({ directory })]`.
   * @example perf.recording.start({ forMs: 600_000 }); // later: const { file } = await perf.recording.stop()
   */
  get recording(): Recording {
    return RECORDING.get(this.runtime.requests) ?? NO_RECORDING;
  }

  /**
   * Hears a client's calls by its own events, on this object only, until the application closes: a `Pool` or `Client` of pg, a
   * `MongoClient`, knex, a `PrismaClient`, a TypeORM `DataSource`. Again for one that is watched, it does nothing.
   * @param options.target its name: `'postgres shop'`. Default: what the client is connected to, `'postgres db:5432/shop'`
   * @throws PERF_ERR_WATCH for another client, or one that does not tell of its calls; PERF_ERR_OPTION
   */
  watch(client: object, options?: { target?: string }): void {
    UPSTREAM_CALLS.get(this.runtime.requests)?.watch(client, options);
  }

  /**
   * Runs `work` as a call to an upstream that no client tells of, until what it returns has settled. It is timed for its target
   * and for the request that makes it. Passes on what it returns or throws; what can be awaited as a plain promise.
   * @example await perf.timed('s3 uploads', () => s3.send(command))
   * @throws PERF_ERR_OPTION
   */
  timed<T>(target: string, work: () => T): T {
    if (typeof target !== 'string' || target === '')
      throw optionError('perf.timed() target', 'the name of an upstream', target);
    if (typeof work !== 'function') throw optionError('perf.timed() work', 'a function that makes the call', work);
    const calls = UPSTREAM_CALLS.get(this.runtime.requests);
    return calls === null ? work() : calls.timed(target, work);
  }

  /**
   * What was, step by step; the running minute included. One minute a step within the last 6 hours, 5 minutes within the last 48,
   * else an hour, or the next multiple of it that is not shorter than `stepMs`. Times are epoch milliseconds.
   * @param options.route one route: `'GET /users/:id'`. Default: all
   * @throws PERF_ERR_OPTION
   * @example await perf.history({ from: Date.now() - 3_600_000, to: Date.now() }, { route: 'GET /users/:id' })
   */
  async history(range: TimeRange & { stepMs?: number }, options?: { route?: string }): Promise<HistorySeries> {
    const read = routeOptions.read(options, 'perf.history() options');
    return (HISTORY.get(this.runtime.requests) ?? NO_HISTORY).history(range, read);
  }

  /**
   * Whether it got slower: `'day'` is the last 24 hours with those before, `'week'` with the same a week before, `'release'` this
   * release with the one before. Intervals take windows of time as units. `text` is the answer in words.
   * @throws PERF_ERR_OPTION
   */
  async compare(what: CompareWhat, options?: { route?: string }): Promise<PerfComparison> {
    const read = routeOptions.read(options, 'perf.compare() options');
    return (HISTORY.get(this.runtime.requests) ?? NO_HISTORY).compare(what, read);
  }

  /** What has become worse or better: active ones first, then what was resolved in the last days. */
  verdicts(): readonly Verdict[] {
    return HISTORY.get(this.runtime.requests)?.verdicts() ?? [];
  }

  /**
   * Puts the size of the data that the current request works on beside its latency and its blocks. Numbers add up over
   * several calls. Outside a request it says so once and does nothing, as with what is no number of 0 or more.
   * @throws PERF_ERR_CONTEXT_OFF with `context: false`
   */
  note(size: SizeNote): void {
    const { requests, report } = this.runtime;
    if (!requests.contextAllowed) throw contextOff('PerfService.note()');
    const state = currentPart(requests);
    if (state === null) {
      // The next requests can be told.
      requests.enableContext();
      const cause = 'PerfService.note() outside a request';
      report.report(cause, `${cause}: what it says is not recorded.`);
      return;
    }
    for (const field of ['rows', 'bytes'] as const) {
      const added = size[field];
      if (added === undefined) continue;
      if (Number.isFinite(added) && added >= 0) {
        const note = (state.note ??= {});
        note[field] = (note[field] ?? 0) + added;
      } else {
        const cause = `PerfService.note() with \`${field}\` that is no size`;
        report.report(cause, `${cause}: a number of 0 or more is expected, got ${describe(added)}. It is left out.`);
      }
    }
  }
}

const route = optional(string({ what: "the name of a route: 'GET /users/:id'", test: (name) => name !== '' }));
const routeOptions = object({ route });
const usersOptions = object({ by: oneOf(['totalMs', 'count'], { default: 'totalMs' }), route });
