import type { EventEmitter } from 'node:events';
import { optionError } from '../../core/option.js';
import { listenShared } from '../../core/shared-listener.js';
import type { MakeBreaker } from '../breaker.js';
import { Gate, type GateHost, type Settle } from '../gate.js';
import { Guard, type Work } from '../guard.js';
import type { GuardedCallOptions } from '../guarded-upstream.js';
import { GuardError } from '../guard.error.js';
import { carefully, type IsFailure, type Outcome } from '../outcome.js';
import { blocks, isOfConnection, isRedisFailure, type RedisCommand } from './redis-command.js';
import { placeSendCommand, type SendCommand } from './send-command.js';
import type { RedisUpstream } from './redis-upstream.js';

/** Commands that are sent together and end together: one, or those of a pipeline. */
interface Batch {
  readonly open: Set<RedisCommand>;
  /** What the batch has failed with. */
  failure: unknown;
  /** Null: it was not let through, and ends with its next turn. */
  settle: Settle | null;
}

/** How a pipeline ends that blocks, as soon as it is sent: it says nothing of Redis. */
const NOT_AWAITED = new DOMException('It takes as long as it takes', 'AbortError');

/**
 * A Redis client's commands, each with a deadline. Where a command waits does not matter: it ends for its caller when its time is
 * up, and when a queue of ioredis hands it in again after that, it is not sent.
 */
export class RedisGuard extends Guard {
  /** And the promise they had then: a cluster gives a pipeline's commands new ones when it sends them elsewhere. */
  private readonly seen = new WeakMap<RedisCommand, Promise<unknown>>();
  private readonly expired = new WeakSet<RedisCommand>();
  private readonly pipelines = new WeakMap<object, Batch>();
  /** The MULTI that has begun one. */
  private transaction: RedisCommand | null = null;
  private readonly isFailure: IsFailure;
  private giveBack: () => void = () => {};
  private ignoreClose: () => void = () => {};

  constructor(
    name: string,
    private readonly upstream: RedisUpstream,
    private readonly host: GateHost,
  ) {
    super(new Gate(name, upstream.options, host));
    const { isFailure } = upstream.options;
    this.isFailure = carefully(
      (error, thrown) => thrown && error !== NOT_AWAITED && (isFailure ?? isRedisFailure)(error),
      host,
    );
  }

  override use(makeBreaker: MakeBreaker): void {
    this.gate.use(makeBreaker);
    this.giveBack = placeSendCommand(this.upstream.client, {
      client: (command, pipeline, send) => this.send(command, pipeline, send),
      // A node of a cluster has queues of its own.
      node: (command, _pipeline, send) => (this.expired.has(command) ? command.promise : send()),
    });
    const emitter = this.upstream.client as object as EventEmitter;
    // A transaction ends with its connection.
    if ('on' in emitter && 'off' in emitter)
      this.ignoreClose = listenShared(emitter, 'close', () => (this.transaction = null));
  }

  override close(): void {
    this.ignoreClose();
    this.giveBack();
  }

  /** Its commands are guarded one by one: a call adds the fallback. */
  protected override outcomeOf(work: Work, { deadlineMs: given }: GuardedCallOptions<unknown>): Promise<Outcome> {
    const { gate, host, upstream } = this;
    if (given !== undefined) {
      const advice = 'Its commands have a deadline each: guardRedis(client, { deadlineMs }).';
      throw optionError('call() options.deadlineMs', `left out for the Redis client "${gate.name}"`, given, advice);
    }
    const deadlineMs = Math.max(0, Math.min(upstream.options.deadlineMs, host.requestDueMs() - host.nowMs()));
    return this.passed(work, deadlineMs, () => false);
  }

  private readonly send: SendCommand = (command, pipeline, send) => {
    if (this.expired.has(command)) return command.promise;
    // From a queue of ioredis, or to another node: its deadline goes on.
    if (this.seen.get(command) === command.promise) return send();
    if (pipeline === null && (this.isInTransaction(command) || isOfConnection(command) || blocks(command)))
      return send();
    this.seen.set(command, command.promise);
    const batch = this.batchOf(pipeline);
    batch.open.add(command);
    if (batch.settle === null) return command.promise;
    const settled = (error: unknown): void => this.settled(batch, command, error);
    command.promise.then(() => settled(null), settled);
    if (pipeline !== null && blocks(command)) this.release({ ...batch, failure: NOT_AWAITED });
    return send();
  };

  /** `multi({ pipeline: false })`: between MULTI and EXEC, a command that is not sent would tear the transaction apart. */
  private isInTransaction(command: RedisCommand): boolean {
    const name = command.name.toLowerCase();
    const was = this.transaction;
    if (name === 'multi' && was === null) {
      this.transaction = command;
      // Refused, or given up in a queue: it has begun none.
      command.promise.catch(() => {
        if (this.transaction === command) this.transaction = null;
      });
    } else if (name === 'exec' || name === 'discard') this.transaction = null;
    return was !== null || this.transaction !== null;
  }

  private batchOf(pipeline: object | null): Batch {
    const known = pipeline === null ? undefined : this.pipelines.get(pipeline);
    if (known !== undefined) return known;
    const batch = this.begin();
    if (pipeline !== null) this.pipelines.set(pipeline, batch);
    return batch;
  }

  private begin(): Batch {
    const { gate, isFailure } = this;
    const batch: Batch = { open: new Set(), failure: null, settle: null };
    const run = (settle: Settle): void => void (batch.settle = settle);
    const ended = gate.enter(this.upstream.options.deadlineMs, (time) =>
      gate.attempt({ time, attempt: 1, run, isFailure }),
    );
    void ended.then(({ value }) => {
      // Out of time, or refused. The breaker knows it already when the caller does.
      if (!(value instanceof GuardError)) return;
      for (const command of batch.open) {
        this.expired.add(command);
        command.reject(value);
      }
    });
    return batch;
  }

  private settled(batch: Batch, command: RedisCommand, error: unknown): void {
    const { failure } = batch;
    // What is an answer must not hide what is a failure.
    if (error !== null && (failure === null || !this.isFailure(failure, true))) batch.failure = error;
    batch.open.delete(command);
    if (batch.open.size === 0) this.release(batch);
  }

  private release({ settle, failure }: Batch): void {
    settle?.(failure !== null, failure);
  }
}
