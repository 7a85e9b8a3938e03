import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RequestState, type RequestOwner } from '../../../src/request/request-state.js';
import type { Block } from '../../../src/event-loop/loop-watch.js';
import { PendingBlocks } from '../../../src/event-loop/pending-blocks.js';

const owner: RequestOwner = {
  deferrer: null,
  experiments: null,
  sharedAnswers: null,
  declaredParameters: null,
  nextId: () => 'id',
  findRoute: () => null,
};
const request = (startedMs: number): RequestState => new RequestState(null, null, startedMs, owner);
interface PendingBlock {
  readonly block: Block;
}
const block = (startMs: number, endMs: number): PendingBlock => ({
  block: {
    inPieces: false,
    sinceMs: startMs,
    startMs,
    endMs,
    cpuRatio: 1,
    lost: () => ({ starvedMs: 0, runDelayMs: 0 }),
    polls: 10,
  },
});

describe('blocks between their end and their classification', () => {
  let nowMs = 0;
  let polls: number | null = 10;
  let judged: PendingBlock[];
  let failures: unknown[];
  let pending: PendingBlocks<PendingBlock>;
  beforeEach(() => {
    vi.useFakeTimers();
    [nowMs, polls, judged, failures] = [100, 10, [], []];
    pending = new PendingBlocks(
      () => nowMs,
      () => polls,
      (given) => judged.push(given),
      (error) => failures.push(error),
    );
  });
  afterEach(() => vi.useRealTimers());
  const pass = async (ms: number): Promise<void> => {
    for (let i = 0; i < ms; i++) {
      nowMs += 1;
      await vi.advanceTimersByTimeAsync(1);
    }
  };

  it('are judged 30 ms later, when the sampler has polled twice more', async () => {
    pending.add(block(0, 100));
    await pass(60);
    expect(judged).toHaveLength(0);
    polls = 12;
    await pass(15);
    expect(judged).toHaveLength(1);
  });

  it('are judged after 200 ms whatever the sampler does', async () => {
    pending.add(block(0, 100));
    await pass(195);
    expect(judged).toHaveLength(0);
    await pass(20);
    expect(judged).toHaveLength(1);
  });

  it('do not wait for a sampler that does not run', async () => {
    polls = null;
    pending.add(block(0, 100));
    await pass(31);
    expect(judged).toHaveLength(1);
  });

  it('hold back the records that they overlap, and only those', async () => {
    const released: RequestState[] = [];
    const release = (state: RequestState): void => void released.push(state);
    expect(pending.hold(request(50), release)).toBe(false);
    pending.add(block(0, 100));
    const victim = request(50);
    expect(pending.hold(victim, release)).toBe(true);
    expect(pending.hold(request(100), release)).toBe(false);
    await pass(60);
    expect(released).toEqual([]);
    polls = 12;
    await pass(15);
    expect(released).toEqual([victim]);
  });

  it('are all judged and released on close', () => {
    const released: RequestState[] = [];
    pending.add(block(0, 100));
    pending.add(block(0, 100));
    pending.hold(request(50), (state) => released.push(state));
    pending.close();
    expect(judged).toHaveLength(2);
    expect(released).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('go on when a classification or a record fails: an error in a timer would end the process', async () => {
    const fails = (): never => {
      throw new Error('on purpose');
    };
    polls = null;
    pending = new PendingBlocks(
      () => nowMs,
      () => polls,
      fails,
      (error) => failures.push(error),
    );
    pending.add(block(0, 100));
    pending.hold(request(50), fails);
    await pass(31);
    expect(failures).toHaveLength(2);
    await pending.settled();
  });

  it('can be waited for', async () => {
    pending.add(block(0, 100));
    let settled = false;
    void pending.settled().then(() => (settled = true));
    await pass(20);
    expect(settled).toBe(false);
    polls = 12;
    await pass(40);
    expect(settled).toBe(true);
    await pending.settled();
  });
});
