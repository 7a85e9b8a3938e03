import { AsyncResource } from 'node:async_hooks';
import type { Linked } from '../../core/linked-list.js';
import { describeOrigin, type Counters, type Origin } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { Item, type Room } from '../item.js';
import type { WorkOptions } from '../work-options.js';
import type { Attempt, AttemptDetails } from './attempt.js';

export interface TaskSpec extends Pick<WorkOptions, 'timeoutMs' | 'attempts' | 'backoffMs' | 'maxBackoffMs'> {
  readonly name: string;
}

export interface Arming {
  readonly when: DeferWhen | null;
  readonly origin: Origin | null;
  readonly sequence: TaskSequence;
}

export type TaskRun = (attempt: Pick<Attempt<unknown>, 'details' | 'info'>) => unknown;

/** One item of in-process work: a task of its own, or an item of a batch, whose lane has the function to run. */
export class TaskItem extends Item {
  request;
  private origin: Origin | null;
  /** The async context in which it is armed. Null for items of a batch. */
  private readonly resource: AsyncResource | null;

  constructor(
    readonly id: string,
    readonly spec: TaskSpec,
    { when, origin }: Arming,
    queue: { readonly room: Room; readonly counters: Counters },
    private queueUp: ((item: TaskItem) => void) | null,
    private run: TaskRun | null,
    readonly data?: unknown,
  ) {
    super(spec.name, when, 0, false, queue.room, queue.counters);
    this.origin = origin;
    this.request = describeOrigin(origin);
    this.resource = run === null ? null : new AsyncResource('PerfDeferredTask');
  }

  /** Releases the request: a backlog of work must not be a backlog of requests and sockets. */
  protected override accept(): void {
    const { queueUp } = this;
    // The route is known by now.
    this.request = describeOrigin(this.origin);
    this.origin = this.queueUp = null;
    queueUp?.(this);
  }

  makeTask(sequence: TaskSequence): Task {
    const { run, resource } = this;
    this.run = this.waitsIn = null;
    return new Task(this.spec, sequence, [this], run, resource!);
  }
}

/** Unit of the queue of this process: one item, or a batch that runs, fails and is tried again together. */
export class Task {
  attempt = 0;

  constructor(
    readonly spec: TaskSpec,
    readonly sequence: TaskSequence,
    readonly items: readonly TaskItem[],
    private run: TaskRun | null,
    readonly resource: AsyncResource,
    private readonly isBatch = false,
  ) {}

  get details(): AttemptDetails {
    const { id, status, request } = this.items[0]!;
    const { requestId, traceparent } = this.isBatch ? describeOrigin(null) : request;
    return { id, attempt: this.attempt, status: this.isBatch ? null : status, requestId, traceparent };
  }

  /** Releases the function with the last attempt: it may hold much. */
  begin(): TaskRun {
    const run = this.run!;
    this.attempt += 1;
    if (this.attempt >= this.spec.attempts) this.run = null;
    return run;
  }
}

/** Tasks that run one after the other, in the order they were armed: those of one request. */
export class TaskSequence implements Linked<TaskSequence> {
  previous: TaskSequence | null = null;
  next: TaskSequence | null = null;
  protected readonly waiting: TaskItem[] = [];
  /** The task that failed and waits for its next attempt: it keeps its place. */
  retrying: Task | null = null;
  /** One of its tasks is running or waits for its next attempt, or the queue will start one. */
  isBusy = false;

  get hasNext(): boolean {
    return this.waiting.length > 0;
  }

  push(item: TaskItem): void {
    item.enter('waiting');
    item.waitsIn = this.waiting;
    this.waiting.push(item);
  }

  shift(): Task | null {
    return this.waiting.shift()?.makeTask(this) ?? null;
  }

  /** Called by the queue when it has nothing to start. */
  becameIdle(): void {}

  /** Drops all items that wait, and returns their names. */
  dropAll(why: string): string[] {
    const { retrying } = this;
    this.retrying = null;
    for (const item of retrying?.items ?? []) item.drop(why, retrying!.attempt);
    const left = [...this.waiting];
    for (const item of left) item.drop(why);
    return [...(retrying?.items ?? []), ...left].map(({ name }) => name);
  }
}
