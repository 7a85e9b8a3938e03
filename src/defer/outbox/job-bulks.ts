import type { JobQueue } from '../deferred-work.js';
import { ExpectedTexts, withBulkScript } from './bulk-script.js';
import { fromJson } from './serialize.js';

/** A job as it was armed. */
export interface ArmedJob {
  readonly name: string;
  /** The user's own object, which may have changed since. */
  readonly data: unknown;
  /** Its JSON when it was armed. */
  readonly json: string | undefined;
  readonly opts: object;
}

/** BullMQ stores this for a job without data. */
const NO_DATA = '{}';

/**
 * Bulks of jobs for one queue. What is stored is the data as it was armed: a copy parsed from its JSON, or, where the
 * queue is seen to let its text be compared before it is sent, the object itself as long as it has not changed. The copy
 * costs 2 to 3 µs a job, which BullMQ turns into the same text again.
 */
export class JobBulks {
  /** Null until a first bulk has shown it. */
  private comparable: boolean | null = null;

  constructor(private readonly queue: JobQueue) {}

  async add(jobs: readonly ArmedJob[]): Promise<void> {
    const texts = jobs.map(({ json }) => json ?? NO_DATA);
    if (this.comparable === true) {
      const expected = new ExpectedTexts(texts, true);
      try {
        await withBulkScript(this.queue, expected).addBulk(jobs.map(({ name, data, opts }) => ({ name, data, opts })));
        return;
      } catch (error) {
        if (expected.agreed) throw error;
      }
    }
    const expected = new ExpectedTexts(texts, false);
    const copies = jobs.map(({ name, json, opts }) => ({ name, data: fromJson(json), opts }));
    await withBulkScript(this.queue, expected).addBulk(copies);
    this.comparable ??= expected.agreed;
  }
}
