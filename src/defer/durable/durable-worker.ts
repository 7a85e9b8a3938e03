import { AsyncResource } from 'node:async_hooks';
import { epochMsOf } from '../../core/clock.js';
import { Attempt, type AttemptOutcome } from '../tasks/attempt.js';
import type { DeferredWork } from '../deferred-work.js';
import type { DurableJob, DurableStoreHost } from './durable-store.js';
import type { DeferLedger } from '../ledger.js';

/** Finds the provider of a work class by the class's name. @throws PERF_ERR_DEFER_WORK */
export type FindWork = (name: string) => DeferredWork | Promise<DeferredWork>;

/** Runs jobs that a store hands back: finds the class, enforces the timeout, writes the record. */
export function durableWorker(find: FindWork, ledger: DeferLedger): DurableStoreHost['run'] {
  return async (job, attempt) => {
    const work = await find(job.work);
    await runOnce(work, job, attempt, ledger);
  };
}

function runOnce(work: DeferredWork, job: DurableJob, attempt: number, ledger: DeferLedger): Promise<void> {
  return new Promise((resolve, reject) => {
    const onSettled = (outcome: AttemptOutcome, error: unknown): void => {
      const waitMs = Math.max(0, epochMsOf(running.startedMs) - job.at);
      ledger.ran({ name: job.name, requestId: job.requestId, waitMs, runMs: running.ranMs, attempt }, outcome, error);
      if (outcome === 'completed') resolve();
      else reject(error instanceof Error ? error : new Error(String(error)));
    };
    const running: Attempt = new Attempt(
      {
        run: (info) => work.run(job.data, info),
        timeoutMs: job.timeoutMs,
        attempt,
        origin: job.requestId === null ? null : { id: job.requestId },
        status: job.status,
        resource: new AsyncResource('PerfDurableJob'),
      },
      onSettled,
    );
    running.start();
  });
}
