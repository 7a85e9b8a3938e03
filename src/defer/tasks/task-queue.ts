import { LinkedList } from '../../core/linked-list.js';
import { inRootContext } from '../../core/root-context.js';
import { Attempt, type AttemptOutcome } from './attempt.js';
import { backoffMs } from '../../core/backoff.js';
import type { Counters } from '../counters.js';
import type { Room } from '../item.js';
import type { Task, TaskItem, TaskSequence } from './task.js';

/** Milliseconds of synchronous work in one turn of the event loop: 300 tasks of 1 ms would block it for 341 ms. */
const TURN_BUDGET_MS = 2;

/** Runs accepted tasks: sequences side by side, the tasks of each in order, at most `concurrency` at a time. Never throws. */
export class TaskQueue {
  private readonly ready = new LinkedList<TaskSequence>();
  private readonly running = new LinkedList<Attempt<Task>>();
  private readonly retries = new Map<TaskSequence, NodeJS.Timeout>();
  private scheduled: NodeJS.Immediate | null = null;
  private isClosing = false;
  private closed = false;

  constructor(
    private readonly concurrency: number,
    readonly room: Room,
    readonly counters: Counters,
  ) {}

  /** The item has its room. It starts in a later turn of the event loop. */
  accept(item: TaskItem, sequence: TaskSequence): void {
    sequence.push(item);
    if (this.closed) sequence.dropAll('the application has closed');
    else if (sequence.hasNext) this.makeReady(sequence);
  }

  /** Shutdown has begun: tasks that wait for their next attempt run now. */
  retryAllNow(): void {
    this.isClosing = true;
    for (const [sequence, timer] of this.retries) {
      clearTimeout(timer);
      this.retryNow(sequence);
    }
  }

  /** Cuts off running tasks, drops waiting ones, and returns their names. Later work is dropped. */
  close(reason: string): string[] {
    this.closed = true;
    if (this.scheduled !== null) clearImmediate(this.scheduled);
    for (const timer of this.retries.values()) clearTimeout(timer);
    const cut = this.running.toArray();
    const sequences = [...this.retries.keys(), ...this.ready.toArray(), ...cut.map(({ subject }) => subject.sequence)];
    for (const attempt of cut) attempt.cut(new Error(reason));
    const left = sequences.flatMap((sequence) => sequence.dropAll(reason));
    return [...cut.flatMap(({ subject }) => subject.items.map(({ name }) => name)), ...left];
  }

  makeReady(sequence: TaskSequence): void {
    if (sequence.isBusy) return;
    sequence.isBusy = true;
    this.ready.add(sequence);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled !== null || this.closed) return;
    this.scheduled = inRootContext(() => setImmediate(this.turn));
  }

  private readonly turn = (): void => {
    this.scheduled = null;
    const startedMs = performance.now();
    while (this.running.size < this.concurrency && performance.now() - startedMs < TURN_BUDGET_MS) {
      const sequence = this.ready.shift();
      if (sequence === null) return;
      this.startNext(sequence);
    }
    // At full concurrency the end of a task schedules the next turn.
    if (this.ready.size > 0 && this.running.size < this.concurrency) this.schedule();
  };

  private startNext(sequence: TaskSequence): void {
    const task = sequence.retrying ?? sequence.shift();
    if (task === null) {
      sequence.isBusy = false;
      return sequence.becameIdle();
    }
    sequence.retrying = null;
    for (const item of task.items) {
      this.room.release(item);
      item.enter('running');
    }
    const run = task.begin();
    const attempt = new Attempt(task, task.details, this.settled);
    this.running.add(attempt);
    attempt.start(run, task.resource, task.spec.timeoutMs);
  }

  private readonly settled = (attempt: Attempt<Task>, outcome: AttemptOutcome, error: unknown): void => {
    const { subject: task, startedMs } = attempt;
    const ranMs = performance.now() - startedMs;
    this.running.delete(attempt);
    if (outcome !== 'completed' && task.attempt < task.spec.attempts && !this.closed) return this.retryLater(task);
    for (const item of task.items) item.end(outcome, error, item.describeEnd(startedMs, ranMs, task.attempt));
    task.sequence.isBusy = false;
    if (task.sequence.hasNext) this.makeReady(task.sequence);
    else task.sequence.becameIdle();
    if (this.ready.size > 0) this.schedule();
  };

  private retryLater(task: Task): void {
    const { sequence } = task;
    this.counters.retried += task.items.length;
    sequence.retrying = task;
    for (const item of task.items) {
      item.enter('waiting');
      // A task that waits for its next attempt takes room as well, or a dead downstream would fill the memory.
      this.room.takeAnyway(item);
    }
    const { backoffMs: baseMs, maxBackoffMs: maxMs } = task.spec;
    const backoff = backoffMs(task.attempt, { baseMs, maxMs });
    const waitMs = this.isClosing ? Math.min(50, backoff) : backoff;
    const timer = inRootContext(() => setTimeout(() => this.retryNow(sequence), waitMs));
    this.retries.set(sequence, timer.unref());
    if (this.ready.size > 0) this.schedule();
  }

  private retryNow(sequence: TaskSequence): void {
    this.retries.delete(sequence);
    sequence.isBusy = false;
    this.makeReady(sequence);
  }
}
