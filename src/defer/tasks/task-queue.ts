import { LinkedList } from '../../core/linked-list.js';
import { inRootContext } from '../../core/root-context.js';
import { Attempt, type AttemptOutcome } from './attempt.js';
import { backoffMs } from '../../core/backoff.js';
import { NEWER, type Capacity } from '../capacity.js';
import type { Counters } from '../counters.js';
import type { Task, TaskSequence } from './task.js';

/** Milliseconds of synchronous work in one turn of the event loop: 300 tasks of 1 ms would block it for 341 ms. */
const TURN_BUDGET_MS = 2;

/** Runs accepted tasks: sequences side by side, each in its order, a bounded number at a time. Never throws at the caller. */
export class TaskQueue {
  private readonly ready = new LinkedList<TaskSequence>();
  private readonly running = new LinkedList<Attempt<Task>>();
  private readonly retries = new Map<TaskSequence, NodeJS.Timeout>();
  /** Tasks that wait for their first attempt, oldest first. */
  private readonly waiting = new LinkedList<Task>();
  private scheduled: NodeJS.Immediate | null = null;
  private hurried = false;
  closed = false;

  constructor(
    private readonly concurrency: number,
    readonly capacity: Capacity,
    readonly counters: Counters,
  ) {}

  /** Takes over a task that has its capacity. It starts in a later turn of the event loop. */
  accept(task: Task): void {
    this.counters.move(null, 'waiting');
    if (this.closed) return this.drop(task, 'the application has closed');
    this.waiting.add(task);
    task.sequence.push(task);
    this.engage(task.sequence);
  }

  /** Since when the task waits that has waited longest, monotonic milliseconds. */
  get oldestMs(): number {
    return this.waiting.first?.items[0]!.acceptedMs ?? Infinity;
  }

  /** Drops the task that has waited longest; false when none waits. */
  dropOldest(): boolean {
    const task = this.waiting.shift();
    if (task === null) return false;
    // The oldest of all is the first of its own sequence, because both keep the order of arrival.
    task.sequence.shift();
    this.drop(task, NEWER);
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

  /** Ends everything that has not finished, and returns its names. Later work is dropped. */
  close(reason: string): string[] {
    this.closed = true;
    if (this.scheduled !== null) clearImmediate(this.scheduled);
    for (const timer of this.retries.values()) clearTimeout(timer);
    const cut = this.running.toArray();
    const retrying = [...this.retries.keys(), ...this.ready.toArray()].flatMap((sequence) => sequence.retrying ?? []);
    const left = [...retrying, ...this.waiting.toArray()];
    for (const attempt of cut) attempt.cut(new Error(reason));
    for (const task of left) {
      this.drop(task, reason);
      this.waiting.delete(task);
    }
    return [...cut.map(({ subject }) => subject), ...left].flatMap(({ size, spec }) =>
      Array<string>(size).fill(spec.name),
    );
  }

  private drop(task: Task, why: string): void {
    this.capacity.release(0, task.size);
    for (const item of task.items) this.counters.drop('waiting', item.describeEnd(null, 0, task.attempt), why);
  }

  engage(sequence: TaskSequence): void {
    if (sequence.engaged) return;
    sequence.engaged = true;
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
    // At full concurrency, whatever ends goes on.
    if (this.ready.size > 0 && this.running.size < this.concurrency) this.schedule();
  };

  private startNext(sequence: TaskSequence): void {
    const retrying = sequence.retrying;
    const task = retrying ?? sequence.shift();
    if (task === null) {
      sequence.engaged = false;
      return sequence.disengaged();
    }
    if (retrying === null) this.waiting.delete(task);
    else sequence.retrying = null;
    this.capacity.release(0, task.size);
    this.counters.move('waiting', 'running', task.size);
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
    for (const item of task.items) {
      const ended = item.describeEnd(startedMs, ranMs, task.attempt);
      if (outcome === 'completed') this.counters.complete('running', ended);
      else this.counters.fail('running', ended, error, outcome);
    }
    task.sequence.engaged = false;
    if (!task.sequence.isEmpty) this.engage(task.sequence);
    else task.sequence.disengaged();
    if (this.ready.size > 0) this.schedule();
  };

  private retryLater(task: Task): void {
    const { sequence } = task;
    this.counters.move('running', 'waiting', task.size);
    this.counters.retried += task.size;
    sequence.retrying = task;
    // A task that waits for its next attempt takes capacity as well, or a dead downstream would fill the memory.
    this.capacity.fill(0, task.size);
    const { backoffMs: baseMs, maxBackoffMs: maxMs } = task.spec;
    const backoff = backoffMs(task.attempt, { baseMs, maxMs });
    const waitMs = this.hurried ? Math.min(50, backoff) : backoff;
    const timer = inRootContext(() => setTimeout(() => this.retryNow(sequence), waitMs));
    this.retries.set(sequence, timer.unref());
    if (this.ready.size > 0) this.schedule();
  }

  private retryNow(sequence: TaskSequence): void {
    this.retries.delete(sequence);
    sequence.engaged = false;
    this.engage(sequence);
  }
}
