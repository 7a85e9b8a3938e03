import type {
  DurableJob,
  DurableStore,
  DurableStoreHost,
  NewDurableJob,
  SpillOptions,
} from '../../../src/defer/durable/durable-store.js';

interface Held {
  items: DurableJob[];
  attempt: number;
}

/** Where memory stores keep their jobs: a stand-in for the server. It can be away. */
export class MemoryPlace {
  readonly known = new Set<string>();
  readonly waiting: Held[] = [];
  readonly stores = new Set<MemoryStore>();
  away = false;
  /** Ids that it will never take. */
  readonly refused = new Set<string>();

  wake(): void {
    for (const store of this.stores) void store.work();
  }
}

/** A durable store for tests of what stands in front of one. Keeps the contract that every store must keep. */
export class MemoryStore implements DurableStore {
  readonly name = 'memory';
  readonly spill: SpillOptions | null;
  private host: DurableStoreHost | null = null;
  private stopped = false;
  private readonly active = new Map<Promise<void>, string>();

  constructor(
    private readonly place: MemoryPlace,
    private readonly worker: boolean,
    spill: SpillOptions | null = null,
  ) {
    // A busy machine is no disk that hangs.
    this.spill = spill && { writeTimeoutMs: 60_000, ...spill };
  }

  start(host: DurableStoreHost): Promise<void> {
    this.host = host;
    this.place.stores.add(this);
    return this.work();
  }

  add(jobs: readonly NewDurableJob[], { batch }: { batch: boolean }): Promise<void> {
    if (this.place.away) return Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
    const refused = jobs.find(({ id }) => this.place.refused.has(id));
    if (refused !== undefined) return Promise.reject(new Error(`${refused.id} is refused`));
    const fresh = jobs.filter(({ id }) => !this.place.known.has(id));
    for (const { id } of fresh) this.place.known.add(id);
    const copies = fresh.map(({ options: _options, ...job }) => structuredClone(job));
    if (batch && copies.length > 0) this.place.waiting.push({ items: copies, attempt: 1 });
    if (!batch) for (const job of copies) this.place.waiting.push({ items: [job], attempt: 1 });
    this.place.wake();
    return Promise.resolve();
  }

  async stopWorker(deadlineMs: number): Promise<void> {
    this.stopped = true;
    const all = Promise.allSettled(this.active.keys());
    await Promise.race([all, new Promise((resolve) => setTimeout(resolve, deadlineMs))]);
    if (this.active.size === 0) return;
    const names = [...this.active.values()].join(', ');
    this.host?.report('cut off', `${this.active.size} durable jobs run again elsewhere: ${names}.`);
  }

  close(): Promise<void> {
    this.place.stores.delete(this);
    return Promise.resolve();
  }

  async work(): Promise<void> {
    await Promise.resolve();
    while (this.worker && !this.stopped && this.place.waiting.length > 0) this.run(this.place.waiting.shift()!);
  }

  private run({ items, attempt }: Held): void {
    const running = this.runItems(items, attempt).finally(() => this.active.delete(running));
    this.active.set(running, items[0]!.name);
  }

  private async runItems(items: readonly DurableJob[], attempt: number): Promise<void> {
    const batched = this.host!.findKind(items[0]!.work) === 'batch';
    const running = batched ? [this.host!.run(items, attempt)] : items.map((item) => this.host!.run([item], attempt));
    const results = await Promise.allSettled(running);
    const hasFailed = (i: number): boolean => results[batched ? 0 : i]!.status === 'rejected';
    const failed = items.filter((item, i) => hasFailed(i) && attempt < item.attempts);
    if (failed.length === 0) return;
    this.place.waiting.push({ items: failed, attempt: attempt + 1 });
    this.place.wake();
  }
}
