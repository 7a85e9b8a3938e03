import type { Job } from 'bullmq';
import { reasonOf } from '../../core/reason.js';
import type { DurableJob, DurableStoreHost } from '../../defer/durable/durable-store.js';

/** Items of one envelope that run at a time. */
const CONCURRENCY = 16;

/**
 * Works off the items of an envelope and acknowledges each on its own, so that the next attempt, after a failure or a
 * crash, runs only the others. Resolves with false when it was stopped halfway.
 */
export async function openEnvelope(
  job: Job,
  items: readonly DurableJob[],
  host: DurableStoreHost,
  isStopping: () => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const acknowledgements = new Acknowledgements(job, host);
  const left = items.filter(({ id }) => !acknowledgements.has(id));
  const attempt = job.attemptsMade + 1;
  const failures: unknown[] = [];
  const next = left.values();
  const lane = async (): Promise<void> => {
    while (!isStopping()) {
      const { value: item } = next.next();
      if (item === undefined) return;
      await host.run(item, attempt, signal).then(
        () => acknowledgements.add(item.id),
        (error: unknown) => failures.push(error),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, left.length) }, lane));
  await acknowledgements.written();
  if (failures.length > 0) {
    throw new Error(`${failures.length} of ${items.length} items failed, first: ${reasonOf(failures[0])}`);
  }
  return next.next().done === true;
}

/** Which items are done, kept in the job's progress. What is acknowledged during a write shares the next one. */
class Acknowledgements {
  private readonly done: Set<string>;
  private unwritten = false;
  private writing: Promise<void> | null = null;

  constructor(
    private readonly job: Job,
    private readonly host: DurableStoreHost,
  ) {
    const progress = job.progress as { acknowledged?: string[] } | number | string | boolean | null;
    this.done = new Set(typeof progress === 'object' ? progress?.acknowledged : []);
  }

  has(id: string): boolean {
    return this.done.has(id);
  }

  add(id: string): void {
    this.done.add(id);
    this.unwritten = true;
    this.writing ??= this.write();
  }

  written(): Promise<void> {
    return this.writing ?? Promise.resolve();
  }

  private async write(): Promise<void> {
    while (this.unwritten) {
      this.unwritten = false;
      try {
        await this.job.updateProgress({ acknowledged: [...this.done] });
      } catch (error) {
        const cause = `acknowledgements of "${this.job.name}" could not be written: ${reasonOf(error)}`;
        this.host.report(cause, `${cause}. Should its envelope be tried again, items that are done run again too.`);
      }
    }
    this.writing = null;
  }
}
