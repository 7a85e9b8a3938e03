import { toEpochMs } from '../core/clock.js';
import { printable } from '../core/printable.js';
import type { RecordedTraffic } from '../ports/recording.js';
import type { RequestState } from '../request/request-state.js';
import { recordedRequest, type RecordedRequest, type RecordingRules } from './recorded-request.js';
import type { ResolvedRecordOptions } from './recording.options.js';
import { LineSample } from './line-sample.js';
import type { TrafficFile } from './traffic-file.js';

/** While no more of `maxBytes` is written, a burst may come: the average is that of the whole recording. */
const SPARE = 0.5;

interface RecordingPlan {
  readonly rules: ResolvedRecordOptions & RecordingRules;
  readonly findSession: (state: RequestState) => string | null;
  readonly startedMs: number;
  readonly forMs: number;
  /** Called with the reason why it must end. */
  readonly full: (reason: string) => void;
}

/** One recording, from start to end. */
export class TrafficRecording {
  private readonly sample: LineSample;
  private bytes = 0;
  /** One for all lines: a clock that is set meanwhile would tear their times apart. */
  private readonly epochOffsetMs: number;

  constructor(
    private readonly file: TrafficFile,
    private readonly plan: RecordingPlan,
  ) {
    this.sample = new LineSample(plan.rules.perRoute);
    this.epochOffsetMs = toEpochMs(plan.startedMs) - plan.startedMs;
    file.written.catch((error: Error) => plan.full(`its file cannot be written: ${error.message}`));
  }

  ended(state: RequestState, nowMs: number): void {
    const { rules, full, startedMs, findSession } = this.plan;
    const { route } = state;
    // A replay of the request that has started this recording would start another.
    if (state.startedMs < startedMs) return;
    // An aborted request has no complete answer, and a stream that its client has left would never end in a replay.
    if (state.request === null || state.aborted) return;
    if (route === null || route.isOwn || route.handler?.skipped === true) return;
    const { session, group } = this.sample.find(findSession(state));
    if (!this.sample.takes(group, route.name)) return;
    const recorded = recordedRequest(state, this.epochOffsetMs + state.startedMs, session, rules);
    if (!SENDABLE.test(`${recorded.method} ${recorded.url}`)) return;
    const line = formatLine(recorded);
    this.bytes += Buffer.byteLength(line) + 1;
    if (this.bytes > rules.maxBytes) return full(`\`maxBytes\` (${rules.maxBytes}) are written`);
    if (!this.file.write(line)) return full('the disk cannot follow');
    this.sample.add(group, route.name, this.room(nowMs));
  }

  async finish(nowMs: number): Promise<RecordedTraffic> {
    const fates = this.sample.end(this.allowed(nowMs - this.plan.startedMs));
    const isWhole = fates.every((fate) => fate === 'session');
    await this.file.finish(
      isWhole ? null : (line, index) => (fates[index] === 'alone' ? alone(line) : fates[index] === 'out' ? null : line),
    );
    return { file: this.file.path, requests: fates.filter((fate) => fate !== 'out').length };
  }

  /** Requests allowed in the whole recording; in the time until now when `maxBytes` may not last to the end. */
  private room(nowMs: number): number {
    const { rules, forMs, startedMs } = this.plan;
    return this.allowed(this.bytes <= SPARE * rules.maxBytes ? forMs : nowMs - startedMs);
  }

  /** One second more: a short recording is not empty. */
  private allowed(ms: number): number {
    const { rules, forMs } = this.plan;
    return rules.requestsPerSecond * (1 + Math.min(ms, forMs) / 1_000);
  }
}

/** Neither `OPTIONS *` nor a method that is not known by its name: no tool could send it again. */
const SENDABLE = /^[A-Z]+ \//;

/** One line to every reader: some end a line at U+2028, which JSON does not escape. */
const formatLine = (request: RecordedRequest): string => printable(JSON.stringify(request), Infinity);

/** A line of an incomplete session, without the session. */
const alone = (line: string): string => formatLine({ ...(JSON.parse(line) as RecordedRequest), session: null });
