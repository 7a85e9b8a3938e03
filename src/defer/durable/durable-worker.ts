import { AsyncResource } from 'node:async_hooks';
import { epochMsOf } from '../../core/clock.js';
import { Attempt } from '../tasks/attempt.js';
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
    let timer: NodeJS.Timeout | null = null;
    const { requestId, status, timeoutMs } = job;
    const running = new Attempt({ requestId, status, attempt }, performance.now(), (_running, outcome, error) => {
      if (timer !== null) clearTimeout(timer);
      const waitMs = Math.max(0, epochMsOf(running.startedMs) - job.at);
      ledger.ran({ name: job.name, requestId, waitMs, runMs: running.ranMs, attempt }, outcome, error);
      if (outcome === 'completed') resolve();
      else reject(error instanceof Error ? error : new Error(String(error)));
    });
    if (!running.start((info) => work.run(job.data, info), new AsyncResource('PerfDurableJob'))) return;
    timer = setTimeout(() => running.timeOut(timeoutMs), timeoutMs);
    timer.unref();
  });
}
