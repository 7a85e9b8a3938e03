import { AsyncResource } from 'node:async_hooks';
import { Attempt, type AttemptOutcome } from './attempt.js';
import { backoffMs } from '../backoff.js';
import { Deadlines } from './deadlines.js';
import type { DeferLedger } from '../ledger.js';
import type { Room } from '../room.js';
import type { DeferTask, TaskSequence, TaskTaker } from './task.js';

/**
 * Milliseconds of synchronous work in one turn of the event loop; what is left waits for the next turn, behind the
 * sockets. 300 tasks of 1 ms hold the loop 10 ms at the most with it, and 341 ms without.
 */
const TURN_BUDGET_MS = 2;
const RETRY = { baseMs: 200, maxMs: 30_000 };

export interface TaskQueueOptions {
  /** How many tasks may run at a time. */
  readonly concurrency: number;
}

/**
 * Runs accepted tasks in this process: sequences side by side, each in its own order, a bounded number at a time, a
 * bounded stretch of the event loop a turn. Whatever a task does, nothing is thrown at the caller.
 */
export class TaskQueue implements TaskTaker {
  // The line of sequences that may run.
  private firstReady: TaskSequence | null = null;
  private lastReady: TaskSequence | null = null;
  private running = 0;
  private readonly retries = new Map<TaskSequence, NodeJS.Timeout>();
  private oldest: DeferTask | null = null;
  private newest: DeferTask | null = null;
  private scheduled: NodeJS.Immediate | null = null;
  private hurried = false;
  private closed = false;
  /** Made at boot, outside every request: what the queue itself schedules must not keep a request's context alive. */
  private readonly root = new AsyncResource('PerfTaskQueue');
  /** Holds every attempt that goes on asynchronously. */
  private readonly deadlines = new Deadlines<Attempt<DeferTask>>(this.root);

  constructor(
    private readonly options: TaskQueueOptions,
    private readonly room: Room,
    private readonly ledger: DeferLedger,
  ) {}

  /** Takes over a task that already has its room. It starts in a later turn of the event loop. */
  accept(task: DeferTask): void {
    task.acceptedMs = performance.now();
    this.ledger.accept();
    if (this.closed) {
      this.room.release();
      this.ledger.drop(task.ended(null, 0), 'the application has closed');
      return;
    }
    this.link(task);
    task.sequence.push(task);
    this.engage(task.sequence);
  }

  /** Gives back the room of a task that need not run. */
  discard(): void {
    this.room.release();
  }

  /** Drops the task that has waited longest; false when none waits. */
  dropOldest(): boolean {
    const task = this.oldest;
    if (task === null) return false;
    // The oldest of all is the first of its own sequence, because both keep the order of arrival.
    task.sequence.shift();
    this.unlink(task);
    this.room.release();
    this.ledger.drop(task.ended(null, 0), 'newer work took its place');
    return true;
  }

  /** Shutdown has begun: what waits for its next attempt runs now. */
  hurry(): void {
    this.hurried = true;
    for (const [sequence, timer] of this.retries) {
      clearTimeout(timer);
      this.retryNow(sequence);
    }
  }

  /** Ends everything that has not finished, and says what that was. Later work is dropped. */
  close(reason: string): string[] {
    this.closed = true;
    const names: string[] = [];
    for (const attempt of this.deadlines.all()) {
      names.push(attempt.subject.spec.name);
      attempt.cut(new Error(reason));
    }
    this.deadlines.clear();
    for (const [sequence, timer] of this.retries) {
      clearTimeout(timer);
      const task = sequence.retrying;
      sequence.retrying = null;
      if (task !== null) this.dropAtClose(task, reason, names);
    }
    this.retries.clear();
    for (let task = this.oldest; task !== null; task = task.newer) {
      this.room.release();
      this.dropAtClose(task, reason, names);
    }
    this.oldest = this.newest = null;
    if (this.scheduled !== null) clearImmediate(this.scheduled);
    this.scheduled = null;
    return names;
  }

  private dropAtClose(task: DeferTask, reason: string, names: string[]): void {
    names.push(task.spec.name);
    this.ledger.drop(task.ended(null, 0), reason);
  }

  private engage(sequence: TaskSequence): void {
    if (sequence.engaged) return;
    sequence.engaged = true;
    if (this.lastReady === null) this.firstReady = sequence;
    else this.lastReady.next = sequence;
    this.lastReady = sequence;
    this.schedule();
  }

  private nextReady(): TaskSequence | null {
    const sequence = this.firstReady;
    if (sequence === null) return null;
    this.firstReady = sequence.next;
    if (this.firstReady === null) this.lastReady = null;
    sequence.next = null;
    return sequence;
  }

  private schedule(): void {
    if (this.scheduled !== null || this.closed) return;
    this.scheduled = this.root.runInAsyncScope(setImmediate, undefined, this.turn);
  }

  private readonly turn = (): void => {
    this.scheduled = null;
    const startedMs = performance.now();
    let nowMs = startedMs;
    while (this.running < this.options.concurrency) {
      const sequence = this.nextReady();
      if (sequence === null) return;
      this.startNext(sequence, nowMs);
      nowMs = performance.now();
      if (nowMs - startedMs >= TURN_BUDGET_MS) {
        if (this.firstReady !== null) this.schedule();
        return;
      }
    }
  };

  private startNext(sequence: TaskSequence, nowMs: number): void {
    const retrying = sequence.retrying;
    const task = retrying ?? sequence.shift();
    if (task === null) {
      sequence.engaged = false;
      return;
    }
    if (retrying === null) {
      this.unlink(task);
      this.room.release();
    } else sequence.retrying = null;
    this.ledger.start();
    this.running += 1;
    const run = task.begin();
    const attempt = new Attempt(task, nowMs, this.settled);
    if (!attempt.start(run, task.resource)) return;
    task.release();
    this.deadlines.add(attempt, task.spec.timeoutMs);
  }

  private readonly settled = (attempt: Attempt<DeferTask>, outcome: AttemptOutcome, error: unknown): void => {
    const task = attempt.subject;
    this.running -= 1;
    this.deadlines.remove(attempt);
    if (outcome !== 'completed' && task.attempt < task.spec.attempts && !this.closed) {
      this.retryLater(task);
      return;
    }
    if (outcome !== 'completed') this.ledger.fail(task.ended(attempt.startedMs, attempt.ranMs), outcome, error);
    else this.ledger.complete(this.ledger.records ? task.ended(attempt.startedMs, attempt.ranMs) : null);
    this.continue(task.sequence);
  };

  private continue(sequence: TaskSequence): void {
    sequence.engaged = false;
    if (!sequence.isEmpty) this.engage(sequence);
    else if (this.firstReady !== null) this.schedule();
  }

  private retryLater(task: DeferTask): void {
    const { sequence } = task;
    this.ledger.retry();
    sequence.retrying = task;
    const waitMs = this.hurried ? Math.min(50, backoffMs(task.attempt, RETRY)) : backoffMs(task.attempt, RETRY);
    const timer = this.root.runInAsyncScope(setTimeout, undefined, () => this.retryNow(sequence), waitMs);
    this.retries.set(sequence, timer.unref());
    if (this.firstReady !== null) this.schedule();
  }

  private retryNow(sequence: TaskSequence): void {
    this.retries.delete(sequence);
    sequence.engaged = false;
    this.engage(sequence);
  }

  private link(task: DeferTask): void {
    task.older = this.newest;
    if (this.newest === null) this.oldest = task;
    else this.newest.newer = task;
    this.newest = task;
  }

  private unlink(task: DeferTask): void {
    if (task.older === null) this.oldest = task.newer;
    else task.older.newer = task.newer;
    if (task.newer === null) this.newest = task.older;
    else task.newer.older = task.older;
    task.older = task.newer = null;
  }
}
