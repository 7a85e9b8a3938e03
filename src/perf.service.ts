import { Inject, Injectable, Optional } from '@nestjs/common';
import { HistoryReader } from './ports/history.js';
import type { PerfHealth, PerfReadiness } from './ports/overview.js';
import type { CompareWhat, HistorySeries, PerfComparison, TimeRange } from './ports/history.js';
import { Profiler, type Profile } from './ports/loop-profile.js';
import { describe, object, choice, optional, optionalNumber, optionError, string } from './core/option.js';
import { PerfError } from './core/perf.error.js';
import type { SizeNote } from './core/record.js';
import type { PerfSnapshot, UserUse } from './core/snapshot.js';
import { NO_RECORDING, Recordings, type Recording } from './ports/recording.js';
import { currentScope } from './request/request-state.js';
import { UserList } from './ports/users.js';
import { UpstreamCalls } from './ports/upstream-calls.js';
import type { Verdict } from './core/verdict.js';
import { PerfApplication } from './request/application.js';
import { PerfRuntime } from './perf.runtime.js';

/** Reads the present figures; {@link note} adds the size of the data that a request works on. */
@Injectable()
export class PerfService {
  /** @internal */
  constructor(
    @Inject(PerfRuntime) private readonly runtime: PerfRuntime,
    @Inject(PerfApplication) private readonly application: PerfApplication,
    @Optional() @Inject(UserList) private readonly userList: UserList | null,
    @Optional() @Inject(UpstreamCalls) private readonly upstream: UpstreamCalls | null,
    @Optional() @Inject(HistoryReader) private readonly past: HistoryReader | null,
    @Optional() @Inject(Profiler) private readonly profiler: Profiler | null,
    @Optional() @Inject(Recordings) private readonly recordings: Recordings | null,
  ) {}

  /** Statistics of all routes and features. Cheap enough for a health page, not for a request's path. */
  snapshot(): PerfSnapshot {
    return this.runtime.snapshot();
  }

  /** Whether loop, CPU, memory and deferred work have room left, and preloaded data is not overdue, for a health check. As cheap as {@link snapshot}. */
  health(): PerfHealth {
    return this.runtime.health();
  }

  /**
   * Whether this process shall get requests: not while it boots, not from SIGTERM or `app.close()` on, not while preloaded data is
   * missing or deferred work is full. Cheap enough for a readiness probe every second.
   */
  ready(): PerfReadiness {
    return this.runtime.ready();
  }

  /**
   * The heaviest users of the last hour, the heaviest first: by the time that their requests took, or by their number.
   * @example perf.users({ by: 'count', route: 'GET /users/:id' })
   * @throws PERF_ERR_OPTION
   */
  users(options?: { by?: 'totalMs' | 'count'; route?: string }): readonly UserUse[] {
    const read = usersOptions.read(options, 'perf.users() options');
    return this.userList?.list(read.by, read.route ?? undefined) ?? [];
  }

  /**
   * Records live traffic to a file, for `nestjs-perf-load`; with `extensions: [record({ directory })]`.
   * @example perf.recording.start({ forMs: 600_000 }); // later: const { file } = await perf.recording.stop()
   */
  get recording(): Recording {
    return this.recordings ?? NO_RECORDING;
  }

  /**
   * Measures a client's calls and, for a pool, the waits for its connections, on this object only, until the application closes:
   * a `Pool` or `Client` of pg or mysql2, a `MongoClient`, knex, a `PrismaClient`, a TypeORM `DataSource`. A second call does nothing.
   * @param options.target its name: `'postgres shop'`. Default: what the client is connected to, `'postgres db:5432/shop'`
   * @throws PERF_ERR_WATCH for another client, or one that emits no calls; PERF_ERR_OPTION
   */
  watch(client: object, options?: { target?: string }): void {
    this.upstream?.watch(client, options);
  }

  /**
   * Runs `work` as a call to an upstream whose client has no channel, until what it returns has settled. It is timed for its target
   * and for the request that makes it. Passes on what it returns or throws; what can be awaited as a plain promise.
   * @example await perf.timed('s3 uploads', () => s3.send(command))
   * @throws PERF_ERR_OPTION
   */
  timed<T>(target: string, work: () => T): T {
    if (typeof target !== 'string' || target === '')
      throw optionError('perf.timed() target', 'the name of an upstream', target);
    if (typeof work !== 'function') throw optionError('perf.timed() work', 'a function that makes the call', work);
    return this.upstream ? this.upstream.timed(target, work) : work();
  }

  /**
   * Returns the past step by step; the running minute included. One minute a step within the last 6 hours, 5 minutes within the last 48,
   * else an hour, or the next multiple of it that is not shorter than `stepMs`. Times are epoch milliseconds.
   * @param options.route one route: `'GET /users/:id'`. Default: all
   * @throws PERF_ERR_OPTION
   * @example await perf.history({ from: Date.now() - 3_600_000, to: Date.now() }, { route: 'GET /users/:id' })
   */
  async history(range: TimeRange & { stepMs?: number }, options?: { route?: string }): Promise<HistorySeries> {
    const read = routeOptions.read(options, 'perf.history() options');
    if (this.past === null) return { stepMs: range.stepMs ?? 60_000, points: [] };
    const { stepMs, points } = await this.past.history(range, read);
    return { stepMs, points };
  }

  /**
   * Whether it got slower: `'day'` is the last 24 hours with those before, `'week'` with the same a week before, `'release'` this
   * release with the one before. Intervals take windows of time as units. `text` is the answer in words.
   * @throws PERF_ERR_OPTION; PERF_ERR_OFF with `history: false`
   */
  async compare(what: CompareWhat, options?: { route?: string }): Promise<PerfComparison> {
    const read = routeOptions.read(options, 'perf.compare() options');
    if (!this.past) throw new PerfError('PERF_ERR_OFF', HISTORY_OFF);
    return this.past.compare(what, read);
  }

  /**
   * Stacks of the main thread by route: of the last 5 to 10 minutes, or of the next `seconds`, sampled 100 times a second.
   * `toCpuProfile()` is a `.cpuprofile` for Chrome's DevTools, VS Code and speedscope.
   * @param options.route one route: `'GET /users/:id'`. Default: all
   * @param options.seconds 1 to 300
   * @throws PERF_ERR_OPTION; PERF_ERR_OFF with `eventLoop: false` or `eventLoop: { profile: false }`
   * @example writeFileSync('slow.cpuprofile', JSON.stringify((await perf.profile({ seconds: 30 })).toCpuProfile()))
   */
  async profile(options?: { route?: string; seconds?: number }): Promise<Profile> {
    const read = profileOptions.read(options, 'perf.profile() options');
    const { profiler } = this;
    if (!profiler) throw new PerfError('PERF_ERR_OFF', PROFILE_OFF);
    return profiler.profile(read);
  }

  /** Returns what has become worse or better: active verdicts first, then those resolved in the last days. */
  verdicts(): readonly Verdict[] {
    return this.past?.verdicts() ?? [];
  }

  /**
   * Puts the size of the data that the current request works on beside its latency and its blocks. Numbers add up over
   * several calls. Outside a request, and with no number of 0 or more, it warns once and does nothing.
   */
  note(size: SizeNote): void {
    const { requests, report } = this.application;
    const state = currentScope(requests);
    if (state === null) {
      const cause = 'PerfService.note() outside a request';
      report.report(cause, `${cause} records nothing.`);
      return;
    }
    // Work after the response must not change a record that has been written.
    if (state.closed) return;
    for (const field of ['rows', 'bytes'] as const) {
      const added = size[field];
      if (added === undefined) continue;
      if (Number.isFinite(added) && added >= 0) {
        // A copy: the record of a block keeps what was known then.
        state.note = { ...state.note, [field]: (state.note?.[field] ?? 0) + added };
      } else {
        const where = state.route === null ? '' : ` on ${state.route.name}`;
        const cause = `PerfService.note()${where} with \`${field}\` that is no size`;
        report.report(cause, `${cause}: a number of 0 or more is expected, got ${describe(added)}. It is left out.`);
      }
    }
  }
}

const route = optional(string({ what: "the name of a route: 'GET /users/:id'", test: (name) => name !== '' }));
const routeOptions = object({ route });
const profileOptions = object({ route, seconds: optionalNumber({ unit: 'a number of seconds', min: 1, max: 300 }) });
const HISTORY_OFF =
  '`perf.compare()` needs the past, which is not kept. Take away `history: false` or `enabled: false`.';
const PROFILE_OFF =
  '`perf.profile()` needs samples of the event loop, which are switched off. Set `eventLoop: { profile: true }` in ' +
  'PerfModule.forRoot(), and take away `enabled: false`, NESTJS_PERF=off and `eventLoop` in NESTJS_PERF_OFF.';
const usersOptions = object({ by: choice(['totalMs', 'count'], { default: 'totalMs' }), route });
