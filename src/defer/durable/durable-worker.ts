import { AsyncResource } from 'node:async_hooks';
import { epochMsOf } from '../../core/clock.js';
import { reasonOf } from '../../core/reason.js';
import type { DeferredBatchWork, DeferredWork, DeferInfo } from '../deferred-work.js';
import type { Counters } from '../counters.js';
import type { WorkProviders } from '../decorator/work-providers.js';
import { Attempt, type AttemptOutcome } from '../tasks/attempt.js';
import type { DurableJob, DurableStoreHost } from './durable-store.js';

/** Runs jobs that a store hands back: finds the class, enforces the timeout, writes the records. */
export class DurableWorker implements DurableStoreHost {
  constructor(
    private readonly works: Pick<WorkProviders, 'find' | 'kindOf'>,
    private readonly counters: Counters,
    /** Queues that handlers ask for. */
    private readonly queueNames: ReadonlySet<string>,
    readonly report: DurableStoreHost['report'],
  ) {}

  queues(): readonly string[] {
    return [...this.queueNames];
  }

  kindOf(name: string): ReturnType<DurableStoreHost['kindOf']> {
    return this.works.kindOf(name);
  }

  run(job: DurableJob, attempt: number, signal?: AbortSignal): Promise<void> {
    return this.attempt([job], attempt, signal, async (info) => {
      const work = (await this.works.find(job.work)) as DeferredWork & DeferredBatchWork;
      const { id, data } = job;
      return work.runBatch === undefined ? work.run(data, info) : work.runBatch([{ id, data }], info);
    });
  }

  runBatch(jobs: readonly DurableJob[], attempt: number, signal?: AbortSignal): Promise<void> {
    const items = jobs.map(({ id, data }) => ({ id, data }));
    return this.attempt(jobs, attempt, signal, async (info) => {
      const work = (await this.works.find(jobs[0]!.work)) as DeferredBatchWork;
      return work.runBatch(items, info);
    });
  }

  private attempt(
    jobs: readonly DurableJob[],
    attempt: number,
    signal: AbortSignal | undefined,
    run: (info: DeferInfo) => unknown,
  ): Promise<void> {
    const { id, requestId, status, timeoutMs, traceparent } = jobs[0]!;
    return new Promise((resolve, reject) => {
      const settled = (running: Attempt, outcome: AttemptOutcome, error: unknown): void => {
        signal?.removeEventListener('abort', stop);
        this.record(jobs, running, outcome, error);
        if (outcome === 'completed') resolve();
        else reject(error instanceof Error ? error : new Error(reasonOf(error)));
      };
      const subject = { id, requestId, status, attempt, traceparent };
      const running = new Attempt(subject, settled);
      const stop = (): void => running.abort(new Error('the application closes'));
      signal?.addEventListener('abort', stop);
      running.start(run, new AsyncResource('PerfDurableJob'), timeoutMs);
    });
  }

  private record(jobs: readonly DurableJob[], running: Attempt, outcome: AttemptOutcome, error: unknown): void {
    for (const { name, requestId, route, at, attempts } of jobs) {
      const waitMs = Math.max(0, epochMsOf(running.startedMs) - at);
      const { ranMs: runMs } = running;
      const { attempt } = running.subject;
      this.counters.ran(
        { name, requestId, route, durable: true, waitMs, runMs, attempt },
        outcome,
        error,
        attempt < attempts,
      );
    }
  }
}
