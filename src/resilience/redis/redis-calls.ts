import type { EventEmitter } from 'node:events';
import { optionError } from '../../core/option.js';
import { listenShared } from '../../core/shared-listener.js';
import { putOn } from '../../core/stand-in.js';
import { carefully, type IsFailure } from '../failure.js';
import { LimitedCall, type Outcome } from '../limited-call.js';
import type { Policies } from '../policies.js';
import { ResilienceError } from '../resilience.error.js';
import { LimitedUpstream, pass, type ResolvedCallOptions, type Work } from '../resilient-upstream.js';
import { UpstreamLimits, type CallHost } from '../upstream-limits.js';
import { blocks, isOfConnection, isRedisFailure, type RedisCommand } from './redis-command.js';
import type { RedisUpstream } from './redis-upstream.js';

/** `pipeline`: the object that the commands of one pipeline share. */
type SendCommand = (command: RedisCommand, pipeline?: object | null, ...more: unknown[]) => unknown;

/** One command, or the commands of one pipeline: they are sent together, and end together. */
interface Batch {
  readonly call: LimitedCall;
  readonly open: Set<RedisCommand>;
  /** The first error that is a failure of Redis, else any error. */
  failure: unknown;
}

/** A pipeline that blocks ends with this as soon as it is sent: its time is no measure of Redis. */
const NOT_AWAITED = new DOMException('The pipeline blocks', 'AbortError');

/**
 * A Redis client's commands, each with a deadline. A command whose time is up is rejected, in whichever queue it waits, and
 * is not sent when the client's queue hands it in again after that.
 */
export class RedisCalls extends LimitedUpstream {
  /** Promises of commands when they were first sent: a cluster that sends a pipeline elsewhere gives its commands new promises. */
  private readonly seen = new WeakMap<RedisCommand, Promise<unknown>>();
  private readonly rejected = new WeakSet<RedisCommand>();
  private readonly pipelines = new WeakMap<object, Batch>();
  /** The MULTI of an open transaction. */
  private transaction: RedisCommand | null = null;
  private readonly isFailure: IsFailure;
  private ends: (() => void)[] = [];

  constructor(
    name: string,
    private readonly upstream: RedisUpstream,
    private readonly host: CallHost,
  ) {
    super(new UpstreamLimits(name, upstream.options, host));
    const isFailure = upstream.options.isFailure ?? isRedisFailure;
    this.isFailure = carefully((error, thrown) => thrown && error !== NOT_AWAITED && isFailure(error), host);
  }

  override apply(policies: Policies): void {
    super.apply(policies);
    const { client } = this.upstream;
    const original = Reflect.get(client, 'sendCommand') as SendCommand;
    let active = true;
    const placed: SendCommand = (command, pipeline, ...more) => {
      const send = (): unknown => original.call(client, command, pipeline, ...more);
      return active ? this.send(command, pipeline ?? null, send) : send();
    };
    // Another wrapper may lie over ours when it ends: ours then only passes commands on.
    this.ends = [putOn(client, 'sendCommand', placed)!, () => (active = false)];
    const emitter = client as object as EventEmitter;
    // A transaction ends with its connection.
    const closed = (): null => (this.transaction = null);
    if ('on' in emitter && 'off' in emitter) this.ends.push(listenShared(emitter, 'close', closed));
  }

  override close(): void {
    for (const end of this.ends.splice(0)) end();
  }

  /** `call()` adds only the fallback: each command has limits of its own. */
  protected override run(work: Work, { deadlineMs: given }: ResolvedCallOptions): Promise<Outcome> {
    const { limits, host, upstream } = this;
    if (given !== null) {
      const advice = 'Its commands have a deadline each: resilientRedis(client, { deadlineMs }).';
      throw optionError('call() options.deadlineMs', `left out for the Redis client "${limits.name}"`, given, advice);
    }
    const deadlineMs = Math.max(0, Math.min(upstream.options.deadlineMs, host.requestDueMs() - host.nowMs()));
    return pass(work, deadlineMs, () => false);
  }

  private send(command: RedisCommand, pipeline: object | null, send: () => unknown): unknown {
    if (this.rejected.has(command)) return command.promise;
    // The client's queue hands it in again, or a cluster sends it to another node: its deadline goes on.
    if (this.seen.get(command) === command.promise) return send();
    if (pipeline === null && (this.isInTransaction(command) || isOfConnection(command) || blocks(command)))
      return send();
    this.seen.set(command, command.promise);
    const batch = (pipeline === null ? undefined : this.pipelines.get(pipeline)) ?? this.begin();
    if (pipeline !== null) this.pipelines.set(pipeline, batch);
    batch.open.add(command);
    if (batch.call.isOver) return command.promise;
    const settled = (error: unknown): void => this.settled(batch, command, error);
    command.promise.then(() => settled(null), settled);
    if (pipeline !== null && blocks(command)) end(batch, NOT_AWAITED);
    return send();
  }

  /** Follows transactions of `multi({ pipeline: false })`: their commands have no deadline, since one that is not sent would break them. */
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

  private begin(): Batch {
    const call = new LimitedCall(this.limits, this.upstream.options.deadlineMs, this.isFailure, () => {});
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
    if (batch.open.size === 0) end(batch, batch.failure);
  }
}

function end({ call }: Batch, failure: unknown): void {
  const outcome = call.endAttempt(failure !== null, failure);
  if (outcome !== null) call.end(outcome);
}
