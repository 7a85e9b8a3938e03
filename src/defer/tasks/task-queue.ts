import { AsyncResource } from 'node:async_hooks';
import { Attempt, type AttemptOutcome } from './attempt.js';
import { backoffMs } from '../backoff.js';
import type { DeferLedger } from '../ledger.js';
import type { Room } from '../room.js';
import type { DeferTask, TaskSequence, TaskTaker } from './task.js';

/**
 * Milliseconds of synchronous work in one turn of the event loop; what is left waits for the next turn, behind the
 * sockets. 300 tasks of 1 ms hold the loop 10 ms at the most with it, and 341 ms without.
 */
const TURN_BUDGET_MS = 2;

export interface TaskQueueOptions {
  /** How many tasks may run at a time. */
  readonly concurrency: number;
}

/**
 * Runs accepted tasks in this process: sequences side by side, each in its own order, a bounded number at a time, a
 * bounded stretch of the event loop a turn. Whatever a task does, nothing is thrown at the caller.
 */
export class TaskQueue implements TaskTaker {
  /** Sequences that may run, in their order. */
  private readonly ready = new Set<TaskSequence>();
  private readonly running = new Set<Attempt<DeferTask>>();
  private readonly retries = new Map<TaskSequence, NodeJS.Timeout>();
  /** All that wait for their first attempt, oldest first. */
  private readonly waiting = new Set<DeferTask>();
  private scheduled: NodeJS.Immediate | null = null;
  private hurried = false;
  private closed = false;
  /** Made at boot, outside every request: what the queue itself schedules must not keep a request's context alive. */
  private readonly root = new AsyncResource('PerfTaskQueue');

  constructor(
    private readonly options: TaskQueueOptions,
    private readonly room: Room,
    private readonly ledger: DeferLedger,
    readonly nextId: () => string,
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
    this.waiting.add(task);
    task.sequence.push(task);
    this.engage(task.sequence);
  }

  /** Gives back the room of a task that need not run. */
  discard(): void {
    this.room.release();
  }

  /** Drops the task that has waited longest; false when none waits. */
  dropOldest(): boolean {
    const [task] = this.waiting;
    if (task === undefined) return false;
    // The oldest of all is the first of its own sequence, because both keep the order of arrival.
    task.sequence.shift();
    this.waiting.delete(task);
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
    for (const attempt of this.running) {
      names.push(attempt.subject.spec.name);
      attempt.cut(new Error(reason));
    }
    for (const [sequence, timer] of this.retries) {
      clearTimeout(timer);
      const task = sequence.retrying;
      sequence.retrying = null;
      if (task === null) continue;
      this.room.release();
      this.dropAtClose(task, reason, names);
    }
    this.retries.clear();
    for (const task of this.waiting) {
      this.room.release();
      this.dropAtClose(task, reason, names);
    }
    this.waiting.clear();
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
    this.ready.add(sequence);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled !== null || this.closed) return;
    this.scheduled = this.root.runInAsyncScope(setImmediate, undefined, this.turn);
  }

  private readonly turn = (): void => {
    this.scheduled = null;
    const startedMs = performance.now();
    let nowMs = startedMs;
    for (const sequence of this.ready) {
      if (this.running.size >= this.options.concurrency) return;
      this.ready.delete(sequence);
      this.startNext(sequence, nowMs);
      nowMs = performance.now();
      if (nowMs - startedMs < TURN_BUDGET_MS) continue;
      if (this.ready.size > 0) this.schedule();
      return;
    }
  };

  private startNext(sequence: TaskSequence, nowMs: number): void {
    const retrying = sequence.retrying;
    const task = retrying ?? sequence.shift();
    if (task === null) {
      sequence.engaged = false;
      return;
    }
    if (retrying === null) this.waiting.delete(task);
    else sequence.retrying = null;
    this.room.release();
    this.ledger.start();
    const run = task.begin();
    const attempt = new Attempt(task, nowMs, this.settled);
    this.running.add(attempt);
    if (attempt.start(run, task.resource, task.spec.timeoutMs, this.root)) task.release();
  }

  private readonly settled = (attempt: Attempt<DeferTask>, outcome: AttemptOutcome, error: unknown): void => {
    const task = attempt.subject;
    this.running.delete(attempt);
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
    else if (this.ready.size > 0) this.schedule();
  }

  private retryLater(task: DeferTask): void {
    const { sequence } = task;
    this.ledger.retry();
    sequence.retrying = task;
    // What waits for its next attempt takes room, or a dead downstream would fill the memory.
    this.room.fill(0);
    const { backoffMs: baseMs, maxBackoffMs: maxMs } = task.spec;
    const backoff = backoffMs(task.attempt, { baseMs, maxMs });
    const waitMs = this.hurried ? Math.min(50, backoff) : backoff;
    const timer = this.root.runInAsyncScope(setTimeout, undefined, () => this.retryNow(sequence), waitMs);
    this.retries.set(sequence, timer.unref());
    if (this.ready.size > 0) this.schedule();
  }

  private retryNow(sequence: TaskSequence): void {
    this.retries.delete(sequence);
    sequence.engaged = false;
    this.engage(sequence);
  }
}
