import { optionError } from '../../core/option.js';
import { putOn } from '../../core/stand-in.js';
import type { MakeBreaker } from '../breaker.js';
import type { Outcome } from '../failure.js';
import { LimitedCall } from '../limited-call.js';
import { LimitedUpstream, pass, type CallHost, type Work } from '../limited-upstream.js';
import { ResilienceError } from '../resilience.error.js';
import type { ResolvedCallOptions } from '../resilient-upstream.js';
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

/**
 * A Redis client's commands, each with a deadline. A command whose time is up is rejected, in whichever queue it waits, and
 * is not sent when the client's queue hands it in again after that.
 */
export class RedisCalls extends LimitedUpstream {
  /** Promises of commands when they were first sent: a cluster that sends a pipeline elsewhere gives its commands new promises. */
  private readonly seen = new WeakMap<RedisCommand, Promise<unknown>>();
  private readonly rejected = new WeakSet<RedisCommand>();
  private readonly pipelines = new WeakMap<object, Batch>();
  private restore = (): void => {};

  constructor(
    name: string,
    private readonly upstream: RedisUpstream,
    host: CallHost,
  ) {
    const limits = { ...upstream.options, maxInFlight: Infinity };
    super(name, limits, (error, thrown) => thrown && isRedisFailure(error), host);
  }

  override limit(makeBreaker: MakeBreaker): void {
    super.limit(makeBreaker);
    const { client } = this.upstream;
    const original = Reflect.get(client, 'sendCommand') as SendCommand;
    const placed: SendCommand = (command, pipeline, ...more) => {
      const send = (): unknown => original.call(client, command, pipeline, ...more);
      return this.isLimited ? this.send(command, pipeline ?? null, send) : send();
    };
    this.restore = putOn(client, 'sendCommand', placed);
  }

  override close(): void {
    // Another wrapper may lie over ours: ours then only passes commands on.
    this.isLimited = false;
    this.restore();
  }

  /** `call()` adds only the fallback: each command has limits of its own. */
  protected override run(work: Work, { deadlineMs: given }: ResolvedCallOptions): Promise<Outcome> {
    const { host, limits, name } = this;
    if (given !== null) {
      const advice = 'Its commands have a deadline each: resilientRedis(client, { deadlineMs }).';
      throw optionError('call() options.deadlineMs', `left out for the Redis client "${name}"`, given, advice);
    }
    return pass(work, Math.max(0, Math.min(limits.deadlineMs, host.requestDueMs() - host.nowMs())), () => false);
  }

  private send(command: RedisCommand, pipeline: object | null, send: () => unknown): unknown {
    if (this.rejected.has(command)) return command.promise;
    // The client's queue hands it in again, or a cluster sends it to another node: its deadline goes on.
    if (this.seen.get(command) === command.promise) return send();
    if (pipeline === null && (isOfConnection(command) || blocks(command))) return send();
    this.seen.set(command, command.promise);
    const batch = (pipeline === null ? undefined : this.pipelines.get(pipeline)) ?? this.begin();
    if (pipeline !== null) this.pipelines.set(pipeline, batch);
    batch.open.add(command);
    if (batch.call.isOver) return command.promise;
    const settled = (error: unknown): void => this.settled(batch, command, error);
    command.promise.then(() => settled(null), settled);
    return send();
  }

  private begin(): Batch {
    const call = new LimitedCall(this, this.limits.deadlineMs, () => {});
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
    const { call, failure } = batch;
    if (error !== null && (failure === null || !this.isFailure(failure, true))) batch.failure = error;
    batch.open.delete(command);
    if (batch.open.size > 0) return;
    const outcome = call.endAttempt(batch.failure !== null, batch.failure);
    if (outcome !== null) call.end(outcome);
  }
}
