import { epochMsOf } from '../core/clock.js';
import type { RecordedTraffic } from '../ports/recording.js';
import type { RequestState } from '../request/request-state.js';
import { printable } from '../core/printable.js';
import { routeName, type Route } from '../request/routes.js';
import { jsonShape } from './json-shape.js';
import { recordedRequest, type Answer, type RecordedRequest, type RedactionRules } from './recorded-request.js';
import type { ResolvedRecordOptions } from './recording.options.js';
import { SessionSample, type SampledSession } from './session-sample.js';
import type { TrafficFile } from './traffic-file.js';
import { WrittenLines } from './written-lines.js';

/** While no more of `maxBytes` is written, a burst may come: the average is that of the whole recording. */
const SPARE = 0.5;

/** One recording, from start to end. */
export class TrafficRecording {
  private readonly sample = new SessionSample();
  private readonly lines = new WrittenLines();
  private bytes = 0;
  /** Answers of handlers; none where a handler sends its response itself. */
  private readonly answers = new WeakMap<RequestState, Answer>();
  private readonly sessions = new WeakMap<RequestState, SampledSession>();
  /** One for all lines: a clock that is set while it records would tear their times apart. */
  private readonly epochOffsetMs: number;

  constructor(
    private readonly file: TrafficFile,
    private readonly options: ResolvedRecordOptions & RedactionRules,
    private readonly sessionOf: (state: RequestState) => string | null,
    private readonly startedMs: number,
    private readonly forMs: number,
    /** Why it must end. */
    private readonly full: (reason: string) => void,
  ) {
    this.epochOffsetMs = epochMsOf(startedMs) - startedMs;
    file.onError((error) => full(`its file cannot be written: ${error.message}`));
  }

  /** A handler's answer: the body is not kept. */
  answered(state: RequestState, response: Answer['response'], body: unknown): void {
    if (!isRecorded(state.route)) return;
    if (!this.wants(this.sampled(state), routeName(state.route))) return;
    this.answers.set(state, { response, shape: jsonShape(body) });
  }

  ended(state: RequestState, nowMs: number): void {
    const { route } = state;
    // It began before: the one that has started this would start another when it is replayed.
    if (state.startedMs < this.startedMs) return;
    // An aborted request has no complete answer, and a stream that its client has left would never end in a replay.
    if (state.request === null || state.aborted || !isRecorded(route)) return;
    const session = this.sampled(state);
    const name = routeName(route);
    if (!this.wants(session, name)) return;
    const startedAt = this.epochOffsetMs + state.startedMs;
    const recorded = recordedRequest(state, startedAt, session.session, this.answers.get(state) ?? null, this.options);
    if (!SENDABLE.test(`${recorded.method} ${recorded.url}`)) return;
    const line = lineOf(recorded);
    this.bytes += Buffer.byteLength(line) + 1;
    if (this.bytes > this.options.maxBytes) return this.full(`\`maxBytes\` (${this.options.maxBytes}) are written`);
    if (!this.file.write(line)) return this.full('the disk cannot follow');
    this.lines.add(session.group, name);
    if (this.sample.keeps(session.group)) this.sample.add(session.group, this.room(nowMs));
  }

  /** Requests allowed in the whole recording; in the time until now when `maxBytes` may not last to the end. */
  private room(nowMs: number): number {
    return this.allowed(this.bytes <= SPARE * this.options.maxBytes ? this.forMs : nowMs - this.startedMs);
  }

  /** One second more: a short recording is not empty. */
  private allowed(ms: number): number {
    return this.options.requestsPerSecond * (1 + Math.min(ms, this.forMs) / 1_000);
  }

  /** Returns one session for a request's answer and its end: a request without a session gets a random group. */
  private sampled(state: RequestState): SampledSession {
    const known = this.sessions.get(state);
    if (known !== undefined) return known;
    const session = this.sample.of(this.sessionOf(state));
    this.sessions.set(state, session);
    return session;
  }

  private wants({ group }: SampledSession, route: string): boolean {
    return this.sample.keeps(group) || this.lines.of(route) < this.options.perRoute;
  }

  async finish(nowMs: number): Promise<RecordedTraffic> {
    this.sample.end(this.allowed(nowMs - this.startedMs));
    const kept = this.lines.fates((group) => this.sample.keeps(group), this.options.perRoute);
    const isWhole = kept.every((how) => how === 'session');
    await this.file.finish(
      isWhole ? null : (line, index) => (kept[index] === 'alone' ? alone(line) : kept[index] === 'out' ? null : line),
    );
    return { file: this.file.path, requests: kept.filter((how) => how !== 'out').length };
  }
}

/** Neither `OPTIONS *` nor a method that is not known by its name: no tool could send it again. */
const SENDABLE = /^[A-Z]+ \//;

/** One line to every reader: some end a line at U+2028, which JSON does not escape. */
const lineOf = (request: RecordedRequest): string => printable(JSON.stringify(request), Infinity);

/** A line of an incomplete session, without the session. */
const alone = (line: string): string => lineOf({ ...(JSON.parse(line) as RecordedRequest), session: null });

const isRecorded = (route: Route | null): route is Route =>
  route !== null && !route.isOwn && route.handler?.skipped !== true;
