import type { Type } from '@nestjs/common';

/** When deferred work runs, decided once by the final status: `'success'` is a status below 400. */
export type DeferWhen = 'success' | 'error' | 'always';

/** What deferred work may know of the request it belongs to. */
export interface DeferContext {
  /** The framework's request (Fastify's or Express'). */
  request: unknown;
  /** What the handler returned; undefined when it threw. */
  result: unknown;
  /** What the handler threw; null when it returned. */
  error: unknown;
  /** Null in `prepare`, because the response is still to come; the final status in a function form. */
  status: number | null;
  requestId: string;
}

/** What one attempt is told. */
export interface DeferInfo {
  /** Aborts when the attempt has exceeded `timeoutMs`, or when shutdown can wait no longer. */
  readonly signal: AbortSignal;
  /** From 1. */
  readonly attempt: number;
  /** Null outside a request. */
  readonly requestId: string | null;
  /** Final status of the response; null outside a request, and for work that was replayed after a crash. */
  readonly status: number | null;
}

/**
 * Work that runs after the response. `prepare` runs at the handler's end and picks plain data; `run` gets it once the
 * response has ended. Without `prepare`, `run` gets what the handler returned.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- the contract: data is whatever `prepare` returns
export interface DeferredWork<T = any> {
  prepare?(context: DeferContext): T;
  run(data: T, info: DeferInfo): unknown;
}

/**
 * The function form of deferred work. An `async` function keeps its context, and so the request, alive until it has ended;
 * work that takes long had better be a class, or hand over what it needs: `({ result }) => send(result)`.
 */
export type DeferFunction = (context: DeferContext) => unknown;

/** What `@DeferWork` takes: a provider's class, or a function. */
export type DeferTarget = Type<DeferredWork> | DeferFunction;

export interface DeferWorkOptions {
  /** In records, logs and reports. @default the class', function's or handler's name */
  name?: string;
  /** @default 'success' */
  when?: DeferWhen;
  /** False: in this process, lost when it crashes. True: through `defer.store`. @default false */
  durable?: boolean;
  /** Milliseconds that one attempt may take; then its signal aborts and it counts as failed. @default 30_000 */
  timeoutMs?: number;
  /** How often it is tried, at the most, with exponential backoff and jitter between. @default 1 */
  attempts?: number;
  /**
   * With `durable`: many small items travel in one job and are acknowledged one by one. For logs and metrics.
   * @default false
   */
  envelope?: boolean;
}

/** The part of a BullMQ `Queue` that {@link Deferrer.addJob} needs. */
export interface JobQueue {
  readonly name: string;
  addBulk(jobs: { name: string; data: unknown; opts?: object }[]): Promise<unknown>;
}
