import { object } from '../core/option.js';
import type { PerfRequest } from '../core/perf-request.js';
import { PerfError } from '../core/perf.error.js';
import { describeReason } from '../core/reason.js';
import { SecretNames } from '../core/secret-names.js';
import { timeout } from '../core/shared-options.js';
import { Recordings, type RecordedTraffic } from '../ports/recording.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, type PerfExtension } from '../request/extension.js';
import { optionalPort, type Feature } from '../request/feature.js';
import type { RequestState } from '../request/request-state.js';
import { DeniedNames } from '../request/safe-request.js';
import type { ResolvedRecordOptions } from './recording.options.js';
import { TrafficFile } from './traffic-file.js';
import { TrafficRecording } from './traffic-recording.js';

const startOption = object({ forMs: timeout() });

const refused = (text: string): PerfError => new PerfError('PERF_ERR_RECORDING', text);

/** Recordings of one application, one at a time. Between them a request costs one comparison. */
class TrafficRecordings extends Recordings {
  private current: TrafficRecording | null = null;
  private last: Promise<RecordedTraffic> | null = null;
  private closed = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: ResolvedRecordOptions,
    private readonly host: PerfApplication,
    private readonly denied: DeniedNames | null,
  ) {
    super();
  }

  override start(options: { forMs: number }): void {
    const { logger, nowMs, enabled } = this.host;
    const { forMs } = startOption.read(options, 'recording.start()');
    if (!enabled)
      throw new PerfError(
        'PERF_ERR_OFF',
        'Nothing is recorded with `enabled: false` or NESTJS_PERF=off. Take it away to record.',
      );
    if (this.closed) throw refused('The application has closed: no request comes any more.');
    if (this.current !== null)
      throw refused('A recording is running already. End it first: await perf.recording.stop().');
    const file = TrafficFile.open(this.options.directory, Date.now());
    const recording = new TrafficRecording(file, {
      rules: { ...this.options, secrets: new SecretNames(this.denied?.names ?? []) },
      findSession: (state) => this.findSession(state),
      startedMs: nowMs(),
      forMs,
      full: (reason) => this.end(recording, reason),
    });
    this.current = recording;
    this.last = null;
    this.timer = setTimeout(() => this.end(recording, null), forMs).unref();
    logger.log(`Recording traffic to ${file.path} for ${forMs / 1_000} s.`);
  }

  override stop(): Promise<RecordedTraffic> {
    if (this.current !== null) this.end(this.current, null);
    return this.last ?? Promise.reject(refused('No recording was started: perf.recording.start({ forMs: 600_000 }).'));
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.current !== null) this.end(this.current, 'the application closes');
    // `end()` logs the error.
    await this.last?.catch(() => undefined);
  }

  override ended(state: RequestState): void {
    this.current?.ended(state, this.host.nowMs());
  }

  /** `early`: why it ends before its time. */
  private end(recording: TrafficRecording, early: string | null): void {
    if (this.current !== recording) return;
    clearTimeout(this.timer);
    this.current = null;
    const finished = recording.finish(this.host.nowMs());
    this.last = finished;
    const { logger } = this.host;
    const why = early === null ? '' : ` before its time: ${early}`;
    finished.then(
      ({ file, requests }) =>
        logger[early === null ? 'log' : 'warn'](`Recording ended${why}. ${requests} requests in ${file}.`),
      (error: PerfError) => logger.warn(error.message),
    );
  }

  private findSession(state: RequestState): string | null {
    const { sessions } = this.options;
    if (sessions === null) {
      const unit = state.unit ?? this.host.units.of(state);
      // Experiments use the request's id as the id of an unknown user.
      return unit === null || unit.userId === state.id ? null : unit.userId;
    }
    try {
      const session = sessions(state.frameworkRequest as PerfRequest) ?? null;
      return session === null || session === '' ? null : String(session);
    } catch (error) {
      const cause = `sessions() threw: ${describeReason(error)}`;
      this.host.report.report(cause, `${cause}. Such requests are recorded without a session.`);
      return null;
    }
  }
}

/** The extension. */
export const recordingExtension = (options: ResolvedRecordOptions): PerfExtension => ({
  name: 'record',
  providers: [
    {
      provide: Recordings,
      inject: [PerfApplication, optionalPort(DeniedNames)],
      useFactory: (...given: [PerfApplication, DeniedNames | null]) => new TrafficRecordings(options, ...given),
    },
    {
      provide: 'perf:recording-feature',
      inject: [Recordings],
      useFactory: (recordings: TrafficRecordings): Feature & { [FEATURE]: true } => ({
        [FEATURE]: true,
        drain: () => recordings.close(),
      }),
    },
  ],
});
