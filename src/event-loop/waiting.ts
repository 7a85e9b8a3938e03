import type { Socket } from 'node:net';
import type { RequestState } from '../core/request-state.js';
import { inRootContext } from '../core/root-context.js';
import type { CarefulReader } from './block-record.js';
import type { Classification } from './classify.js';
import { progressOf } from './interrupt/naming.js';
import type { Block } from './loop-watch.js';

/** So many turns after a block, all that waited in sockets has been read: a request that starts later was not held up by it. */
const TURNS_TO_READ = 2;
/** The same where the connection had to be accepted first. */
const TURNS_TO_ACCEPT_AND_READ = 3;

interface Queue {
  readonly requests: RequestState[];
  /** Of those that were in flight. */
  readonly connections: ReadonlySet<Socket | null>;
  /** How often the loop has come round since the block. */
  turns: number;
}

/** Requests that a block has kept waiting in their sockets: they come in the first turns after it. */
export class SocketQueue {
  /** Of the last block, while requests may still come. */
  private last: Queue | null = null;

  constructor(private readonly reader: CarefulReader) {}

  /** A block has ended. What is returned is filled until all that waited has come. */
  openAfter(inFlight: readonly RequestState[]): readonly RequestState[] {
    const connections = new Set(inFlight.map((state) => this.connectionOf(state)));
    this.last = { requests: [], connections, turns: 0 };
    this.countTurns(this.last);
    return this.last.requests;
  }

  started(state: RequestState): void {
    if (this.last === null) return;
    const { requests, connections, turns } = this.last;
    const connection = this.connectionOf(state);
    // On one connection, the next request is sent when the one before is answered.
    if (connection !== null && connections.has(connection)) return;
    if (turns < TURNS_TO_READ || connection?.bytesWritten === 0) requests.push(state);
  }

  private countTurns(queue: Queue): void {
    inRootContext(() =>
      setImmediate(() => {
        queue.turns += 1;
        if (this.last !== queue) return;
        if (queue.turns < TURNS_TO_ACCEPT_AND_READ) this.countTurns(queue);
        else this.last = null;
      }),
    );
  }

  /** Null where several requests share it: HTTP/2. */
  private connectionOf({ request }: RequestState): Socket | null {
    return this.reader.read(
      'the connection',
      () => (request === null || request.httpVersionMajor > 1 ? null : request.socket),
      null,
    );
  }
}

/** Who waited for sure: where the culprit is not known, it may be anyone whose code would not have been seen. */
export function waitedOf(
  inFlight: readonly RequestState[],
  { culprit, suspect, ran, waited }: Classification<RequestState>,
): RequestState[] {
  if (waited === 'unknown') return [];
  const others = inFlight.filter((state) => state !== culprit && state !== suspect && !ran.includes(state));
  // Before its route function a request may run outside the store.
  return waited === 'seen' ? others.filter((state) => progressOf(state) !== null) : others;
}

/** Milliseconds of the block in which a request was in flight. */
export function msInside({ startMs, endMs }: Block, state: RequestState): number {
  const untilMs = state.endedMs > 0 ? Math.min(endMs, state.endedMs) : endMs;
  return Math.max(0, untilMs - Math.max(startMs, state.startedMs));
}
