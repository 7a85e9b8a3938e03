import type { ServerResponse } from 'node:http';
import type { PerfError } from '../core/perf.error.js';
import type { RequestState } from '../request/request-state.js';
import type { DeferWhen } from './deferred-work.js';
import type { Armed, HandlerCall } from './item.js';
import { TaskSequence } from './tasks/task.js';

/** After so long, a handler whose client has left counts as successful: it may have given up writing to it. */
const GRACE_MS = 30_000;

/** Work that one request has armed, in order. The final status decides over it; without one, the end of the handler does. */
export class RequestWork extends TaskSequence {
  private armed: Armed[] = [];
  private decision: { readonly status: number | null; readonly success: boolean } | null = null;
  /** Set when the client has left before there was a status. */
  private abandoned: ServerResponse | null = null;
  private watching: NodeJS.Timeout | null = null;
  /** Names of the work that was not discarded. */
  readonly committed: string[] = [];
  /** With the first refusal of what has not been answered yet. */
  written: Promise<PerfError | null> | null = null;
  private delaysEnd = false;

  /** @param undecided requests whose client has left and whose handler is still busy */
  constructor(private readonly undecided: Set<RequestWork>) {
    super();
  }

  get size(): number {
    return this.armed.length;
  }

  /** Work of a decorated handler runs before that of the decorated methods which it has called. */
  arm(entry: Armed, call: HandlerCall | null = null): void {
    if (entry.written !== undefined && this.decision === null) this.waitFor(entry.written);
    if (this.decision !== null) return this.settle(entry, entry.when ?? 'always');
    [entry.line, entry.call] = [this.armed, call];
    const isCalled = ({ call: other }: Armed, at: number): boolean =>
      call !== null && at >= call.place && (other?.works ?? call.works) !== call.works;
    const at = this.armed.findIndex(isCalled);
    this.armed.splice(at < 0 ? this.armed.length : at, 0, entry);
    if (this.abandoned !== null) this.watch(this.abandoned);
  }

  /** Nothing that is on disk is kept: a request may last for hours. */
  private waitFor(written: Promise<PerfError | null>): void {
    const all: Promise<PerfError | null> = Promise.all([this.written, written]).then(([before, now]) => {
      if (this.written === all) this.written = null;
      return before ?? now;
    });
    this.written = all;
  }

  /** Delays the last byte of the response until its durable work is on disk. */
  delayEnd(response: ServerResponse): void {
    if (this.delaysEnd || response.writableEnded) return;
    this.delaysEnd = true;
    const end = response.end.bind(response) as (...parameters: unknown[]) => ServerResponse;
    response.end = (...parameters: unknown[]) => {
      const { written } = this;
      if (written === null) return end(...parameters);
      void written.then(() => end(...parameters));
      return response;
    };
  }

  /** Takes back what a handler has armed when it failed: it is tried again. */
  retract(works: object): void {
    for (const entry of this.armed.filter(({ call }) => call?.hasFailed === true && call.works === works)) {
      this.armed.splice(this.armed.indexOf(entry), 1);
      entry.discard();
    }
  }

  ended(state: RequestState): void {
    const { response } = state;
    if (!state.aborted || response === null || response.headersSent) {
      return this.decide(state.status, state.status < 400);
    }
    this.abandoned = response;
    if (this.armed.length > 0) this.watch(response);
  }

  /** The handler has ended, which decides where no status has. */
  handlerEnded(success: boolean): void {
    if (this.abandoned !== null) this.decide(499, success);
  }

  /** The handler may still fail after its client has left: its unread answer decides. Only requests that were abandoned with work armed pay for this. */
  private watch(response: ServerResponse): void {
    if (this.watching !== null) return;
    this.undecided.add(this);
    this.watching = setTimeout(() => this.handlerEnded(true), GRACE_MS).unref();
    const answered = (): void => this.handlerEnded(response.statusCode < 400);
    const end = response.end.bind(response) as (...parameters: unknown[]) => ServerResponse;
    response.end = (...parameters: unknown[]) => {
      answered();
      return end(...parameters);
    };
    // A stream never ends a response that is gone: it emits `unpipe` where it was at it, `pipe` where it comes too late.
    response.once('unpipe', answered).once('pipe', answered);
  }

  decide(status: number | null, success: boolean): void {
    if (this.decision !== null) return;
    this.decision = { status, success };
    if (this.watching !== null) clearTimeout(this.watching);
    this.undecided.delete(this);
    const { armed } = this;
    this.armed = [];
    for (const entry of armed) entry.line = null;
    for (const entry of armed) this.settle(entry, entry.when ?? 'success');
  }

  private settle(entry: Armed, when: DeferWhen): void {
    const { status, success } = this.decision!;
    if (!runsAfter(when, success)) return entry.discard();
    this.committed.push(entry.name);
    entry.commit(status);
  }
}

/** Work that a request has armed; made at the first call. */
export function openRequestWork(state: RequestState, undecided: Set<RequestWork>): RequestWork {
  if (state.work !== null) return state.work as RequestWork;
  const work = new RequestWork(undecided);
  state.work = work;
  // A handler may go on after its response has closed.
  if (state.closed) work.ended(state);
  return work;
}

/** Whether a response or handler with this end is one that work waits for. */
export const runsAfter = (when: DeferWhen | null, success: boolean): boolean =>
  when === 'always' || (when === 'success') === success;
