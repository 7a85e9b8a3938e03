import type { EventEmitter } from 'node:events';
import { optionError } from '../../core/option.js';
import { listenShared } from '../../core/shared-listener.js';
import { CallLimits, type CallHost, type LimitedCall, type Outcome } from '../call-limits.js';
import { carefully, type IsFailure } from '../failure.js';
import type { Policies } from '../policies.js';
import { ResilienceError } from '../resilience.error.js';
import { Calls, type ResilientCallOptions, type Work } from '../resilient-upstream.js';
import { blocks, isOfConnection, isRedisFailure, type RedisCommand } from './redis-command.js';
import type { RedisUpstream } from './redis-upstream.js';
import { placeSendCommand, type SendCommand } from './send-command.js';

/** One command, or the commands of one pipeline: they are sent together, and end together. */
interface Batch {
  readonly call: LimitedCall;
  readonly open: Set<RedisCommand>;
  /** The first error that is a failure of Redis, else any error. */
  failure: unknown;
}

/** A pipeline that blocks ends with this as soon as it is sent: it says nothing of Redis. */
const NOT_AWAITED = new DOMException('The pipeline blocks', 'AbortError');

/**
 * A Redis client's commands, each with a deadline. A command whose time is up is rejected wherever it waits, and is not sent when a
 * queue of ioredis hands it in again after that.
 */
export class RedisCalls extends Calls {
  /** A command's promise when it was sent first: a cluster gives a pipeline's commands new ones when it sends them elsewhere. */
  private readonly seen = new WeakMap<RedisCommand, Promise<unknown>>();
  private readonly rejected = new WeakSet<RedisCommand>();
  private readonly pipelines = new WeakMap<object, Batch>();
  /** The MULTI of an open transaction. */
  private transaction: RedisCommand | null = null;
  private readonly isFailure: IsFailure;
  private giveBack: () => void = () => {};
  private ignoreClose: () => void = () => {};

  constructor(
    name: string,
    private readonly upstream: RedisUpstream,
    private readonly host: CallHost,
  ) {
    super(new CallLimits(name, upstream.options, host));
    const { isFailure } = upstream.options;
    this.isFailure = carefully(
      (error, thrown) => thrown && error !== NOT_AWAITED && (isFailure ?? isRedisFailure)(error),
      host,
    );
  }

  override apply(policies: Policies): void {
    this.limits.apply(policies);
    this.giveBack = placeSendCommand(this.upstream.client, {
      client: (command, pipeline, send) => this.send(command, pipeline, send),
      // A node of a cluster has queues of its own.
      node: (command, _pipeline, send) => (this.rejected.has(command) ? command.promise : send()),
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

  /** Commands have their limits each: a call adds the fallback. */
  protected override run(work: Work, { deadlineMs: given }: ResilientCallOptions<unknown>): Promise<Outcome> {
    const { limits, host, upstream } = this;
    if (given !== undefined) {
      const advice = 'Its commands have a deadline each: resilientRedis(client, { deadlineMs }).';
      throw optionError('call() options.deadlineMs', `left out for the Redis client "${limits.name}"`, given, advice);
    }
    const deadlineMs = Math.max(0, Math.min(upstream.options.deadlineMs, host.requestDueMs() - host.nowMs()));
    return this.pass(work, deadlineMs, () => false);
  }

  private readonly send: SendCommand = (command, pipeline, send) => {
    if (this.rejected.has(command)) return command.promise;
    // A queue of ioredis hands it in again, or a cluster sends it to another node: its deadline goes on.
    if (this.seen.get(command) === command.promise) return send();
    if (pipeline === null && (this.isInTransaction(command) || isOfConnection(command) || blocks(command)))
      return send();
    this.seen.set(command, command.promise);
    const batch = this.findBatch(pipeline);
    batch.open.add(command);
    if (batch.call.isOver) return command.promise;
    const settled = (error: unknown): void => this.settled(batch, command, error);
    command.promise.then(() => settled(null), settled);
    if (pipeline !== null && blocks(command)) this.endBatch(batch, NOT_AWAITED);
    return send();
  };

  /** `multi({ pipeline: false })`: a command between MULTI and EXEC that is not sent would tear the transaction apart. */
  private isInTransaction(command: RedisCommand): boolean {
    const name = command.name.toLowerCase();
    const was = this.transaction;
    if (name === 'multi' && was === null) {
      this.transaction = command;
      // A MULTI that was refused, or given up in a queue, has begun no transaction.
      command.promise.catch(() => {
        if (this.transaction === command) this.transaction = null;
      });
    } else if (name === 'exec' || name === 'discard') this.transaction = null;
    return was !== null || this.transaction !== null;
  }

  private findBatch(pipeline: object | null): Batch {
    const known = pipeline === null ? undefined : this.pipelines.get(pipeline);
    if (known !== undefined) return known;
    const batch = this.begin();
    if (pipeline !== null) this.pipelines.set(pipeline, batch);
    return batch;
  }

  private begin(): Batch {
    const call = this.limits.start(this.upstream.options.deadlineMs, this.isFailure, () => {});
    const batch: Batch = { call, open: new Set(), failure: null };
    call.beginAttempt();
    void call.ended.then(({ value }) => {
      if (!(value instanceof ResilienceError)) return;
      for (const command of batch.open) {
        this.rejected.add(command);
        command.reject(value);
      }
    });
    return batch;
  }

  private settled(batch: Batch, command: RedisCommand, error: unknown): void {
    const { failure } = batch;
    if (error !== null && (failure === null || !this.isFailure(failure, true))) batch.failure = error;
    batch.open.delete(command);
    if (batch.open.size === 0) this.endBatch(batch, batch.failure);
  }

  private endBatch({ call }: Batch, failure: unknown): void {
    void call.endAttempt(failure !== null, failure).then((outcome) => call.end(outcome));
  }
}
