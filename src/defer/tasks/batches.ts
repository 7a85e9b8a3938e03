import type { DeferredBatchWork } from '../deferred-work.js';
import type { BatchOptions } from '../work-options.js';
import { BatchLane } from './batch-lane.js';
import type { TaskQueue } from './task-queue.js';
import type { TaskSpec } from './task.js';

/** The lanes of one application: one for each work with `runBatch`, and for each way in which it is to run. */
export class Batches {
  private readonly lanes = new Map<DeferredBatchWork, Map<string, BatchLane>>();

  constructor(private readonly queue: TaskQueue) {}

  laneOf(work: DeferredBatchWork, spec: TaskSpec & { readonly batch: BatchOptions }): BatchLane {
    const { name, timeoutMs, attempts, backoffMs, maxBackoffMs, batch } = spec;
    const key = JSON.stringify([name, timeoutMs, attempts, backoffMs, maxBackoffMs, batch]);
    let lanes = this.lanes.get(work);
    if (lanes === undefined) this.lanes.set(work, (lanes = new Map()));
    let lane = lanes.get(key);
    if (lane === undefined) {
      lane = new BatchLane(work.runBatch.bind(work), spec, batch, this.queue);
      lanes.set(key, lane);
    }
    return lane;
  }

  flush(): void {
    for (const lane of this.all()) lane.flush();
  }

  /** Drops an item that waits; false when none does. */
  dropOldest(): boolean {
    return this.all().some((lane) => lane.dropOldest());
  }

  /** Drops what waits; returns its names. */
  close(reason: string): string[] {
    return this.all().flatMap((lane) => lane.close(reason));
  }

  private all(): BatchLane[] {
    return [...this.lanes.values()].flatMap((lanes) => [...lanes.values()]);
  }
}
