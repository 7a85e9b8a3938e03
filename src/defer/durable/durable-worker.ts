import { AsyncResource } from 'node:async_hooks';
import { toEpochMs } from '../../core/clock.js';
import { describe } from '../../core/option.js';
import { describeReason } from '../../core/reason.js';
import type { Counters } from '../counters.js';
import type { WorkProviders } from '../decorator/work-providers.js';
import type { DeferredBatchWork, DeferredWork } from '../deferred-work.js';
import { Attempt, type AttemptOutcome } from '../tasks/attempt.js';
import type { DurableJob, DurableStoreHost } from './durable-store.js';

/** Runs jobs that a store delivers: finds the class, enforces the timeout, writes the records. */
export class DurableWorker implements DurableStoreHost {
  constructor(
    private readonly works: Pick<WorkProviders, 'lookUp'>,
    private readonly counters: Counters,
    private readonly queueNames: ReadonlySet<string>,
    readonly report: DurableStoreHost['report'],
  ) {}

  queues = (): readonly string[] => [...this.queueNames];

  findKind(name: string): ReturnType<DurableStoreHost['findKind']> {
    const whyNot = `no module of this application provides a class with \`run\` and ${describe(name)} in \`@DurableWork()\``;
    return this.works.lookUp(name)?.kind ?? { whyNot };
  }

  run(jobs: readonly DurableJob[], attempt: number, signal?: AbortSignal): Promise<void> {
    const { id, work, data, requestId, status, timeoutMs, traceparent } = jobs[0]!;
    const run = async ({ info }: Pick<Attempt<unknown>, 'info'>): Promise<unknown> => {
      const instance = (await this.works.lookUp(work)!.provide(undefined)) as DeferredWork & DeferredBatchWork;
      if (instance.runBatch === undefined) return instance.run(data, info);
      const items = jobs.map((job) => ({ id: job.id, data: job.data }));
      return instance.runBatch(items, info);
    };
    return new Promise((resolve, reject) => {
      const settled = (running: Attempt<readonly DurableJob[]>, outcome: AttemptOutcome, error: unknown): void => {
        signal?.removeEventListener('abort', stop);
        this.counters.runningJobs -= 1;
        // An attempt that a shutdown cuts off runs again: it has not failed.
        if (outcome === 'completed' || signal?.aborted !== true) this.record(running, outcome, error);
        if (outcome === 'completed') resolve();
        else reject(error instanceof Error ? error : new Error(describeReason(error)));
      };
      const running = new Attempt(jobs, { id, requestId, status, attempt, traceparent }, settled);
      const stop = (): void => running.abort(new Error('the application closes'));
      signal?.addEventListener('abort', stop);
      this.counters.runningJobs += 1;
      running.start(run, new AsyncResource('PerfDurableJob'), timeoutMs);
    });
  }

  givenUp(jobs: readonly DurableJob[], attempt: number, error: Error): void {
    for (const { name, requestId, route, at } of jobs) {
      const waitMs = Math.max(0, Date.now() - at);
      this.counters.endAttempt(
        { name, requestId, route, durable: true, waitMs, runMs: 0, attempt },
        'failed',
        error,
        false,
      );
    }
  }

  private record(running: Attempt<readonly DurableJob[]>, outcome: AttemptOutcome, error: unknown): void {
    const { subject, startedMs, details } = running;
    const runMs = performance.now() - startedMs;
    for (const { name, requestId, route, at, attempts } of subject) {
      const waitMs = Math.max(0, toEpochMs(startedMs) - at);
      const ended = { name, requestId, route, durable: true, waitMs, runMs, attempt: details.attempt };
      this.counters.endAttempt(ended, outcome, error, details.attempt < attempts);
    }
  }
}
