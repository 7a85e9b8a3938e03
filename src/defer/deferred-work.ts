import type { Type } from '@nestjs/common';
import type { PerfRequest } from '../core/perf-request.js';

/** When deferred work runs, decided once by the final status: `'success'` is a status below 400. */
export type DeferWhen = 'success' | 'error' | 'always';

/** The request that deferred work belongs to, and how its handler ended. */
// oxlint-disable-next-line typescript/no-explicit-any -- the contract: a decorator cannot know its handler's result
export interface DeferContext<Result = any> {
  /** The framework's request (Fastify's or Express'). */
  request: PerfRequest;
  /** The handler's return value, awaited; undefined when it threw. */
  result: Result;
  /** The value that the handler threw; null when it returned. */
  error: unknown;
  /** Null in `prepare`, because the response is still to come; the final status in a function form. */
  status: number | null;
  requestId: string;
}

/** The arguments of one attempt. */
export interface DeferInfo {
  /** Id of the work, the same in every attempt; the job's id for durable work. */
  readonly id: string;
  /** Aborts when the attempt has exceeded `timeoutMs`, or when shutdown can wait no longer. */
  readonly signal: AbortSignal;
  /** From 1. */
  readonly attempt: number;
  /** Null outside a request. */
  readonly requestId: string | null;
  /** Final status of the response; null outside a request, and for work that was replayed after a crash. */
  readonly status: number | null;
  /** W3C trace context of the request (`traceparent`), for a span that links to it; null when there was none. */
  readonly traceparent?: string | null;
}

/**
 * Work that runs after the response. `prepare` runs at the handler's end and picks plain data; `run` gets it once the
 * response has ended. A `prepare` that returns undefined declines: nothing runs. Without `prepare`, `run` gets what the
 * handler returned.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- the contract: data is whatever `prepare` returns
export interface DeferredWork<T = any> {
  prepare?(context: DeferContext): T | undefined;
  run(data: T, info: DeferInfo): unknown;
}

/** One of many small items that run together. */
export interface BatchItem<T> {
  readonly id: string;
  readonly data: T;
}

/** Work that takes many items in one call: an INSERT of 500 rows. Items of all requests are collected for a moment (`batch`), and fail and are tried again together. */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export interface DeferredBatchWork<T = any> {
  prepare?(context: DeferContext): T | undefined;
  runBatch(items: readonly BatchItem<T>[], info: DeferInfo): unknown;
}

/**
 * The function form of deferred work. An `async` function keeps its context, and so the request, alive until it has ended;
 * work that takes long had better be a class, or hand over what it needs: `({ result }) => send(result)`.
 */
export type DeferFunction = (context: DeferContext) => unknown;

/** The argument of `@DeferWork`: a provider's class, or a function. */
export type DeferTarget = Type<DeferredWork | DeferredBatchWork> | DeferFunction;

export interface DeferWorkOptions {
  /** In records, logs and reports. @default the name in `@DurableWork()`, else that of the class, function or handler */
  name?: string;
  /** Which final status runs it: below 400, from 400 on (or no answer), or any. @default 'success' */
  when?: DeferWhen;
  /** False: in this process, lost when it crashes. True: through `defer.store`. @default false */
  durable?: boolean;
  /** Milliseconds that one attempt may take; then its signal aborts and it counts as failed. @default 30_000 */
  timeoutMs?: number;
  /** How often it is tried, at the most. @default 1 */
  attempts?: number;
  /** With `durable`: the queue that its jobs travel in, with a concurrency of its own. @default the store's queue */
  queue?: string;
  /** Wait after the first failure, milliseconds; doubles with each, with jitter. @default 1_000 */
  backoffMs?: number;
  /** It doubles up to this, milliseconds. @default 60_000 */
  maxBackoffMs?: number;
  /** For work with `runBatch`: how many items at the most, and how long the first one waits for others. @default { maxItems: 500, maxWaitMs: 50 } */
  batch?: { maxItems?: number; maxWaitMs?: number };
}

/** Options of work that any code starts, not only a handler. */
export interface EnqueueOptions extends Omit<DeferWorkOptions, 'when'> {
  /**
   * Durable: the same id twice is one job, for as long as the store remembers it; all works of a queue share their ids.
   * Without `durable` the id is only `info.id`.
   * @default made up
   */
  id?: string;
  /** Durable: not before so many milliseconds have passed. @default 0 */
  delayMs?: number;
  /** Durable: 1 is the first to run, 2_097_151 the last; work without one runs before both. @default none */
  priority?: number;
}

/** The part of a BullMQ `Queue` that {@link Deferrer.addJob} needs. */
export interface JobQueue {
  readonly name: string;
  addBulk(jobs: { name: string; data: unknown; opts?: object }[]): Promise<unknown>;
}
