import type { ServerResponse } from 'node:http';
import type { PerfError } from '../core/perf.error.js';
import type { RequestState } from '../request/request-state.js';
import type { DeferWhen } from './deferred-work.js';
import type { Armed, HandlerCall } from './item.js';
import { TaskSequence } from './tasks/task.js';

/** A handler that has not ended so long after its client left counts as successful: its stream may never end. */
const GRACE_MS = 30_000;

/** Work that one request has armed, in order. The final status commits or discards it; without a status, the end of the handler. */
export class RequestWork {
  private armed: Armed[] = [];
  private decision: { readonly status: number | null; readonly success: boolean } | null = null;
  /** Set when the client has left before the response had a status. */
  private abandoned: ServerResponse | null = null;
  private watching: NodeJS.Timeout | null = null;
  /** Runs its in-process tasks one after the other. */
  readonly sequence = new TaskSequence();
  /** Names for `expectWork()` of `nestjs-perf/testing`. */
  readonly committed: string[] = [];
  /** Resolves when all is on disk, with the first refusal; null when nothing is being written. */
  writes: Promise<PerfError | null> | null = null;
  private delaysEnd = false;

  /** @param undecided requests whose client has left and whose handler is still busy */
  constructor(private readonly undecided: Set<RequestWork>) {}

  get size(): number {
    return this.armed.length;
  }

  /** Work of a decorated handler goes before that of the decorated methods it has called, which ended and armed theirs before it. */
  arm(entry: Armed, call: HandlerCall | null = null): void {
    if (entry.written !== undefined && this.decision === null) this.waitFor(entry.written);
    if (this.decision !== null) return this.settle(entry, entry.when ?? 'always');
    [entry.waitsIn, entry.call] = [this.armed, call];
    const isOfCalled = ({ call: other }: Armed, at: number): boolean =>
      call !== null && at >= call.armedBefore && (other?.works ?? call.works) !== call.works;
    const at = this.armed.findIndex(isOfCalled);
    this.armed.splice(at < 0 ? this.armed.length : at, 0, entry);
    if (this.abandoned !== null) this.watch(this.abandoned);
  }

  /** Forgets writes that have ended: a request may last for hours. */
  private waitFor(written: Promise<PerfError | null>): void {
    const all: Promise<PerfError | null> = Promise.all([this.writes, written]).then(([before, now]) => {
      if (this.writes === all) this.writes = null;
      return before ?? now;
    });
    this.writes = all;
  }

  /** Delays the last byte of the response until its durable work is on disk. */
  delayEnd(response: ServerResponse): void {
    if (this.delaysEnd || response.writableEnded) return;
    this.delaysEnd = true;
    const end = response.end.bind(response) as (...parameters: unknown[]) => ServerResponse;
    response.end = (...parameters: unknown[]) => {
      const { writes } = this;
      if (writes === null) return end(...parameters);
      void writes.then(() => end(...parameters));
      return response;
    };
  }

  /** Discards work of the handler's failed call before an interceptor's next one. */
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

  handlerEnded(success: boolean): void {
    if (this.abandoned !== null) this.decide(499, success);
  }

  /** A handler may still fail after its client has left: its status, which no client reads, decides then. */
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
    // A stream never ends a response that is gone: it emits `unpipe` if it was piped before, `pipe` if it is piped now.
    response.once('unpipe', answered).once('pipe', answered);
  }

  decide(status: number | null, success: boolean): void {
    if (this.decision !== null) return;
    this.decision = { status, success };
    if (this.watching !== null) clearTimeout(this.watching);
    this.undecided.delete(this);
    const { armed } = this;
    this.armed = [];
    for (const entry of armed) entry.waitsIn = null;
    for (const entry of armed) this.settle(entry, entry.when ?? 'success');
  }

  private settle(entry: Armed, when: DeferWhen): void {
    const { status, success } = this.decision!;
    if (!runsAfter(when, success)) return entry.discard();
    this.committed.push(entry.name);
    entry.commit(status);
  }
}

export function openRequestWork(state: RequestState, undecided: Set<RequestWork>): RequestWork {
  if (state.work !== null) return state.work as RequestWork;
  const work = new RequestWork(undecided);
  state.work = work;
  // A handler may go on after its response has closed.
  if (state.closed) work.ended(state);
  return work;
}

/** Whether work with this `when` runs after a response, or a handler, that ended like this. */
export const runsAfter = (when: DeferWhen | null, success: boolean): boolean =>
  when === 'always' || (when === 'success') === success;
