import type { Job } from 'bullmq';
import { reasonOf } from '../../core/reason.js';
import type { DurableJob, DurableStoreHost } from '../../defer/durable/durable-store.js';

const CONCURRENCY = 16;

/**
 * Works off the items of an envelope and acknowledges each on its own, in the job's progress: the next attempt, after a
 * failure or a crash, runs only the others. Resolves with false when it was stopped halfway.
 */
export async function openEnvelope(
  job: Job,
  items: readonly DurableJob[],
  host: DurableStoreHost,
  isStopping: () => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const progress = job.progress as { acknowledged?: string[] } | number | string | boolean | null;
  const acknowledged = new Set(typeof progress === 'object' ? progress?.acknowledged : []);
  const left = items.filter(({ id }) => !acknowledged.has(id));
  const failures: unknown[] = [];
  let cutOff = false;
  let isWriting = false;
  let writing = Promise.resolve();
  const write = async (): Promise<void> => {
    isWriting = true;
    // What is acknowledged during a write shares the next one.
    for (let written = 0; written < acknowledged.size;) {
      written = acknowledged.size;
      await job.updateProgress({ acknowledged: [...acknowledged] }).catch((error: unknown) => {
        const cause = `acknowledgements of "${job.name}" could not be written: ${reasonOf(error)}`;
        host.report(cause, `${cause}. Should its envelope be tried again, items that are done run again too.`);
      });
    }
    isWriting = false;
  };
  const next = left.values();
  const lane = async (): Promise<void> => {
    while (!isStopping()) {
      const { value: item } = next.next();
      if (item === undefined) return;
      try {
        await host.run(item, job.attemptsMade + 1, signal);
        acknowledged.add(item.id);
        if (!isWriting) writing = write();
      } catch (error) {
        if (signal.aborted) cutOff = true;
        else failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  await writing;
  if (cutOff || next.next().done !== true) return false;
  if (failures.length > 0) {
    throw new Error(`${failures.length} of ${items.length} items failed, first: ${reasonOf(failures[0])}`);
  }
  return true;
}
