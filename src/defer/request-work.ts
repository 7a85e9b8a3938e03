import type { ServerResponse } from 'node:http';
import type { PerfError } from '../core/perf.error.js';
import type { RequestState } from '../request/request-state.js';
import { NEWER, type Capacity } from './capacity.js';
import type { DeferWhen } from './deferred-work.js';
import { TaskSequence, type Armed } from './tasks/task.js';

const DELAYED: unique symbol = Symbol('perf:end-delayed');

/** The call of a decorated handler that has armed work. */
interface HandlerCall {
  readonly works: object;
  /** {@link RequestWork.size} when it began. */
  readonly place: number;
  /** A handler that has failed may be tried again. */
  readonly success: boolean;
}

interface ArmedEntry {
  readonly entry: Armed;
  readonly call: HandlerCall | null;
}

/** Work that one request has armed, in order. The final status decides over it; without one, the end of a decorated handler that still runs. */
export class RequestWork extends TaskSequence {
  private armed: ArmedEntry[] = [];
  private decision: { readonly status: number; readonly success: boolean } | null = null;
  /** The client has left before there was a status. */
  private isAbandoned = false;
  /** Calls of decorated handlers that run. */
  private calls = 0;
  /** How the last of them has ended. */
  success = true;
  /** Names of the work that was not discarded. */
  readonly committed: string[] = [];
  /** With the first refusal of what has not been answered yet. */
  written: Promise<PerfError | null> | null = null;

  /** @param undecided requests whose client has left, and whose decorated handler still runs */
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
    const called = ({ call: other }: ArmedEntry, at: number): boolean =>
      call !== null && at >= call.place && other !== null && other.works !== call.works;
    const at = this.armed.findIndex(called);
    this.armed.splice(at < 0 ? this.armed.length : at, 0, { entry, call });
  }

  /** Nothing that is on disk is kept: a request may last for hours. */
  private waitFor(written: Promise<PerfError | null>): void {
    const all: Promise<PerfError | null> = Promise.all([this.written, written]).then(([before, now]) => {
      if (this.written === all) this.written = null;
      return before ?? now;
    });
    this.written = all;
  }

  /** Takes back what a call that has failed has armed. */
  retract(works: object): void {
    const isRetracted = ({ call }: ArmedEntry): boolean => call?.success === false && call.works === works;
    const retracted = this.armed.filter(isRetracted);
    this.armed = this.armed.filter((one) => !isRetracted(one));
    for (const { entry } of retracted) entry.discard();
  }

  override dropArmed(capacity: Capacity): boolean {
    const at = this.armed.findIndex(({ entry }) => entry.capacity === capacity);
    if (at >= 0) this.armed.splice(at, 1)[0]!.entry.drop!(NEWER);
    return at >= 0;
  }

  ended({ aborted, response, status }: RequestState): void {
    this.isAbandoned = aborted && response?.headersSent === false;
    if (!this.isAbandoned) this.decide(status, status < 400);
    else if (this.calls === 0) this.decide(499, this.success);
    else this.undecided.add(this);
  }

  handlerStarted(): void {
    this.calls += 1;
  }

  handlerEnded(): void {
    this.calls -= 1;
    if (this.isAbandoned && this.calls === 0) this.decide(499, this.success);
  }

  decide(status: number, success: boolean): void {
    if (this.decision !== null) return;
    this.decision = { status, success };
    this.undecided.delete(this);
    for (const { entry } of this.armed.splice(0)) this.settle(entry, entry.when ?? 'success');
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

/** Delays the last byte of a response until its durable work is on disk. */
export function delayEnd(response: ServerResponse & { [DELAYED]?: true }, work: RequestWork): void {
  if (response[DELAYED] === true || response.writableEnded) return;
  response[DELAYED] = true;
  const end = response.end.bind(response) as (...parameters: unknown[]) => ServerResponse;
  response.end = (...parameters: unknown[]) => {
    const { written } = work;
    if (written === null) return end(...parameters);
    void written.then(() => end(...parameters));
    return response;
  };
}
