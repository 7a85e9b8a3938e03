import { afterEach, describe, expect, it } from 'vitest';
import type { DurableJob, DurableStore, NewDurableJob } from '../../../src/defer/durable/durable-store.js';
import { until } from '../../fixtures/until.js';

/** Makes stores that share one place: what one adds, another may work off. */
export interface StorePlace {
  store(options: { worker: boolean }): DurableStore;
  clean(): Promise<void>;
}

export const jobNamed = (id: string, more: Partial<NewDurableJob> = {}): NewDurableJob => ({
  id,
  work: 'SendReceipt',
  name: 'SendReceipt',
  data: { id },
  requestId: 'request-1',
  status: 201,
  timeoutMs: 5_000,
  attempts: 1,
  at: Date.now(),
  traceparent: null,
  route: null,
  options: { queue: null, backoffMs: 1_000, maxBackoffMs: 60_000, delayMs: 0, priority: 0 },
  ...more,
});

const ranAs = ({ options: _options, ...job }: NewDurableJob): DurableJob => job;

/** What every durable store must do, whatever is behind it. */
export function durableStoreContract(name: string, makePlace: () => StorePlace | Promise<StorePlace>): void {
  describe(`${name} as a durable store`, () => {
    const stores: DurableStore[] = [];
    let place: StorePlace | null = null;
    const reports: string[] = [];

    /** A started store that records what it runs; `fail` decides which runs fail. */
    async function start(
      worker: boolean,
      fail: (job: DurableJob, attempt: number) => boolean | Promise<boolean> = () => false,
    ): Promise<{ store: DurableStore; ran: { job: DurableJob; attempt: number }[] }> {
      place ??= await makePlace();
      const ran: { job: DurableJob; attempt: number }[] = [];
      const store = place.store({ worker });
      stores.push(store);
      await store.start({
        run: async (jobs, attempt) => {
          for (const job of jobs) ran.push({ job, attempt });
          if (await fail(jobs[0]!, attempt)) throw new Error(`${jobs[0]!.id} fails`);
        },
        findKind: (work) => (work === 'WriteAudit' ? 'batch' : 'one'),
        queues: () => [],
        report: (_, message) => reports.push(message),
      });
      store.startWorker?.();
      return { store, ran };
    }
    const once = { batch: false };
    const idsOf = (ran: { job: DurableJob }[]): string[] => ran.map(({ job }) => job.id).toSorted();
    /** A connection may take a moment; callers repeat, so the suite does. */
    async function add(store: DurableStore, jobs: readonly NewDurableJob[], options = once): Promise<void> {
      for (let failures = 0; ; failures++) {
        try {
          await store.add(jobs, options);
          return;
        } catch (error) {
          if (failures > 200) throw error;
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      }
    }

    afterEach(async () => {
      for (const store of stores.splice(0)) {
        await store.stopWorker(1_000);
        await store.close();
      }
      await place?.clean();
      place = null;
      reports.length = 0;
    });

    it('runs every job once with everything that was stored', async () => {
      const { store, ran } = await start(true);
      const jobs = Array.from({ length: 50 }, (_, i) => jobNamed(`job-${i}`));
      await add(store, jobs);
      await until('all jobs to run', () => ran.length === 50);
      expect(idsOf(ran)).toEqual(jobs.map(({ id }) => id).toSorted());
      expect(ran.find(({ job }) => job.id === 'job-7')).toEqual({ job: ranAs(jobs[7]!), attempt: 1 });
    });

    it('keeps only one job of an id, however often it is added', async () => {
      const { store } = await start(false);
      const jobs = Array.from({ length: 10 }, (_, i) => jobNamed(`job-${i}`));
      await add(store, jobs);
      await add(store, jobs);
      await add(store, [...jobs.slice(5), jobNamed('job-last')]);
      const { ran } = await start(true);
      await until('the last job to run', () => idsOf(ran).includes('job-last'));
      await until('the others to run', () => ran.length >= 11);
      expect(idsOf(ran)).toEqual([...jobs.map(({ id }) => id), 'job-last'].toSorted());
    });

    it('remembers an id after its job is done: an answer that was lost makes no second run', async () => {
      const { store, ran } = await start(true);
      await add(store, [jobNamed('job-1')]);
      await until('it to run', () => ran.length === 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      await add(store, [jobNamed('job-1')]);
      await add(store, [jobNamed('job-2')]);
      await until('the next to run', () => idsOf(ran).includes('job-2'));
      expect(idsOf(ran)).toEqual(['job-1', 'job-2']);
    });

    it('hands work over to another process: one adds, another runs', async () => {
      const producer = await start(false);
      const worker = await start(true);
      await add(producer.store, [jobNamed('job-1'), jobNamed('job-2')]);
      await until('the worker to run both', () => worker.ran.length === 2);
      expect(producer.ran).toEqual([]);
    });

    it('tries a failing job again as often as it says, and tells each attempt its number', async () => {
      const { store, ran } = await start(true, (_, attempt) => attempt < 2);
      await add(store, [jobNamed('job-1', { attempts: 3 })]);
      await until('the second attempt', () => ran.length === 2);
      expect(ran.map(({ attempt }) => attempt)).toEqual([1, 2]);
    });

    const work = 'WriteAudit';
    it('carries many items to runBatch() as one job and gives each its own data', async () => {
      const { store, ran } = await start(true);
      const items = Array.from({ length: 100 }, (_, i) =>
        jobNamed(`item-${i}`, { work, data: { i }, status: 200 + (i % 5) }),
      );
      await add(store, items, { batch: true });
      await until('all items to run', () => ran.length === 100);
      expect(idsOf(ran)).toEqual(items.map(({ id }) => id).toSorted());
      expect(ran.find(({ job }) => job.id === 'item-42')?.job).toEqual(ranAs(items[42]!));
    });

    it('takes a batch with other items for another, even behind the same first: after a crash they are put together anew', async () => {
      const { store } = await start(false);
      const items = Array.from({ length: 5 }, (_, i) => jobNamed(`item-${i}`, { work }));
      await add(store, items.slice(0, 2), { batch: true });
      await add(store, items, { batch: true });
      await add(store, items, { batch: true });
      const { ran } = await start(true);
      await until('every item to run', () => new Set(idsOf(ran)).size === 5);
      expect(ran.length).toBeLessThanOrEqual(7);
    });

    it('stops: takes no new work, waits for what runs, and leaves the rest to the next worker', async () => {
      let release = (): void => {};
      const gate = new Promise<void>((resolve) => (release = resolve));
      const finished: string[] = [];
      const { store, ran } = await start(true, async ({ id }) => {
        await gate;
        finished.push(id);
        return false;
      });
      await add(store, [jobNamed('job-1')]);
      await until('the first to run', () => ran.length === 1);
      const stopped = store.stopWorker(5_000);
      await new Promise((resolve) => setTimeout(resolve, 20));
      release();
      await stopped;
      expect(finished).toEqual(['job-1']);
      await add(store, [jobNamed('job-2')]);
      await store.close();
      const next = await start(true);
      await until('the next worker to run the rest', () => next.ran.length === 1);
      expect(idsOf(next.ran)).toEqual(['job-2']);
      expect(reports).toEqual([]);
    });

    it('returns from stopWorker() at its deadline when a job hangs, and says which', async () => {
      const { store, ran } = await start(true, () => new Promise(() => {}));
      await add(store, [jobNamed('job-1')]);
      await until('it to run', () => ran.length === 1);
      const startedMs = performance.now();
      await store.stopWorker(50);
      expect(performance.now() - startedMs).toBeLessThan(3_000);
      expect(reports).toEqual(['1 durable jobs run again elsewhere: SendReceipt.']);
    });
  });
}
