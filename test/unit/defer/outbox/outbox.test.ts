import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, vi, afterEach, beforeEach } from 'vitest';
import { OncePerCause } from '../../../../src/core/reporter.js';
import { Counters } from '../../../../src/defer/counters.js';
import { Outbox, OutboxItem, type Group, type Parcel } from '../../../../src/defer/outbox/outbox.js';
import { Room } from '../../../../src/defer/item.js';

type Send = (items: readonly number[], call: number) => Promise<unknown>;
interface Numbered extends Parcel {
  readonly number: number;
  readonly group: Group;
}

/** An outbox of numbers. */
class Numbers extends Outbox<Numbered> {
  readonly sent: (readonly number[])[] = [];
  readonly refused: number[] = [];

  constructor(
    private readonly answer: Send,
    readonly counters: Counters,
  ) {
    const limits = { maxJobs: 100, maxWaitMs: 5 };
    super('numbers', true, new Room('drop-new', 10_000), { limits, counters, report: () => {} }, Infinity);
  }

  protected override chooseGroup({ group }: Numbered): Group {
    return group;
  }

  protected override store(items: readonly OutboxItem<Numbered>[]): Promise<unknown> {
    const numbers = items.map(({ parcel }) => parcel.number);
    return this.answer(numbers, this.sent.push(numbers));
  }

  protected override reject({ parcel }: OutboxItem<Numbered>): void {
    this.refused.push(parcel.number);
  }
}

function senderWith(send: Send, limits: Partial<Group['limits']> = {}) {
  const stored: number[] = [];
  const silent = { log() {}, warn() {}, error() {} };
  const sender = new Numbers(send, new Counters(null, new OncePerCause(silent, () => performance.now())));
  const add = (count: number, from = 0, key = '', isOneJob = false): void => {
    const group = { key, limits: { maxJobs: 100, maxWaitMs: 5, ...limits }, isOneJob };
    for (let number = from; number < from + count; number++) {
      const parcel = { id: `${number}`, name: `${number}`, json: undefined, requestId: null, route: null };
      const ended = (error: Error | null): void => void (error === null && stored.push(number));
      new OutboxItem<Numbered>(sender, { ...parcel, number, group }, null, ended).commit(null);
    }
  };
  return { sender, sent: sender.sent, stored, refused: sender.refused, add };
}

const trouble = (): Promise<never> => Promise.reject(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }));
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('micro-batching', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('sends what came within `maxWaitMs` as one bulk', async () => {
    const { sent, stored, add } = senderWith(async () => {});
    add(3);
    await vi.advanceTimersByTimeAsync(4);
    expect(sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    expect(sent).toEqual([[0, 1, 2]]);
    expect(stored).toEqual([0, 1, 2]);
  });

  it('sends at once when `maxJobs` are held', async () => {
    const { sent, add } = senderWith(async () => {}, { maxJobs: 10, maxWaitMs: 1_000 });
    add(10);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toEqual([numbers(10)]);
  });

  it('never puts more than 64 jobs in a bulk, so that one turn of the loop stays short', async () => {
    const { sent, stored, add } = senderWith(async () => {}, { maxJobs: 1_000 });
    add(500);
    await vi.advanceTimersByTimeAsync(50);
    expect(sent.map((items) => items.length)).toEqual([64, 64, 64, 64, 64, 64, 64, 52]);
    expect(stored).toEqual(numbers(500));
  });

  it('mixes no groups, keeps none that is empty, and lets none wait behind a large one', async () => {
    const { sender, sent, add } = senderWith(async () => {}, { maxJobs: 1_000 });
    add(300);
    for (let i = 0; i < 3; i++) add(2, 1_000 + 10 * i, `tenant ${i}`, true);
    await vi.advanceTimersByTimeAsync(50);
    expect(sent.map((items) => items.length)).toEqual([64, 2, 2, 2, 64, 64, 64, 44]);
    expect(sent[1]).toEqual([1_000, 1_001]);
    expect(sender.close('the end')).toEqual([]);
  });

  it('keeps at most four bulks on their way', async () => {
    const answers: (() => void)[] = [];
    const { sent, stored, add } = senderWith(() => new Promise<void>((resolve) => answers.push(resolve)));
    add(1_000);
    await vi.advanceTimersByTimeAsync(100);
    expect(sent).toHaveLength(4);
    answers[0]!();
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toHaveLength(5);
    while (stored.length < 1_000) {
      for (const answer of answers.splice(0)) answer();
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(stored.toSorted((a, b) => a - b)).toEqual(numbers(1_000));
  });

  it('sends a failed bulk again with the same items until the server is back, and loses none', async () => {
    const { sender, sent, stored, add } = senderWith((_, call) => (call < 30 ? trouble() : Promise.resolve()));
    add(5);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(sent).toHaveLength(30);
    for (const items of sent) expect(items).toEqual(sent[0]);
    expect(stored).toEqual(numbers(5));
    expect(sender.counters.retried).toBe(29 * 5);
  });

  it('finds the one job that the queue refuses, stores the others, and gives up on it only', async () => {
    const { stored, refused, add } = senderWith(
      async (items) => {
        if (items.includes(17)) throw new Error('Custom Id cannot be integers');
      },
      { maxJobs: 32 },
    );
    add(32);
    await vi.advanceTimersByTimeAsync(3_000);
    // Evidence that the queue takes others: without it a refusal is not believed for a minute.
    add(1, 100);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(refused).toEqual([17]);
    expect(stored.toSorted((a, b) => a - b)).toEqual([...numbers(32).filter((i) => i !== 17), 100]);
  });

  it('close() returns what a client may hold', async () => {
    const { sender, add } = senderWith(() => new Promise(() => {}));
    add(2);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sender.close('the end')).toEqual(['0', '1']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('treats a queue whose `addBulk` throws like one that rejects', async () => {
    let calls = 0;
    const { stored, add } = senderWith((): Promise<unknown> => {
      if (++calls < 3) throw Object.assign(new Error('closed'), { code: 'ECONNRESET' });
      return Promise.resolve();
    });
    add(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(stored).toEqual([0]);
  });

  it('flush() sends what is held and what waits for its next attempt without waiting', async () => {
    const { sender, sent, stored, add } = senderWith((_, call) => (call === 1 ? trouble() : Promise.resolve()), {
      maxWaitMs: 1_000,
      maxJobs: 2,
    });
    add(2);
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toHaveLength(1);
    add(1, 2);
    sender.flush();
    await vi.advanceTimersByTimeAsync(0);
    expect(stored.toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
  });

  it('close() returns everything that is not stored, on its way or not, and leaves no timer', async () => {
    const { sender, add } = senderWith(trouble, { maxJobs: 2 });
    add(11);
    await vi.advanceTimersByTimeAsync(20);
    expect(
      sender
        .close('the end')
        .map(Number)
        .toSorted((a, b) => a - b),
    ).toEqual(numbers(11));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('context', () => {
  it('sends in no request’s context, whoever armed the first job of the batch', async () => {
    const store = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const done = new Promise<void>((resolve) => {
      const { add } = senderWith(
        async (items, call) => {
          seen.push(store.getStore());
          if (call === 1) throw Object.assign(new Error('again'), { code: 'EPIPE' });
          if (call === 2) store.run('request 2', () => add(100, 100));
          if (items.length > 1) resolve();
        },
        { maxJobs: 100 },
      );
      store.run('request 1', () => add(1));
    });
    await done;
    expect(seen.length).toBeGreaterThanOrEqual(3);
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });
});
