import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RequestState, type RequestOwner } from '../../../src/request/request-state.js';
import { PendingBlocks, type SeenBlock } from '../../../src/event-loop/pending-blocks.js';

const owner: RequestOwner = {
  deferrer: null,
  experiments: null,
  sharedAnswers: null,
  nextId: () => 'id',
  findRoute: () => null,
};
const request = (startedMs: number, endedMs = startedMs + 50): RequestState =>
  Object.assign(new RequestState(null, null, startedMs, owner), { endedMs });
const block = (startMs: number, endMs: number): SeenBlock => ({
  inFlight: [],
  samples: [],
  block: {
    inPieces: false,
    sinceMs: startMs,
    startMs,
    endMs,
    cpuRatio: 1,
    readLostMs: () => 0,
  },
});

describe('blocks between their end and their classification', () => {
  let nowMs = 0;
  let judged: SeenBlock[];
  let failures: unknown[];
  let pending: PendingBlocks;
  beforeEach(() => {
    vi.useFakeTimers();
    [nowMs, judged, failures] = [100, [], []];
    pending = new PendingBlocks(
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

  it('are judged 100 ms later: the figures of other threads come late', async () => {
    pending.add(block(0, 100));
    await pass(50);
    pending.add(block(120, 150));
    await pass(45);
    expect(judged).toHaveLength(0);
    await pass(10);
    expect(judged).toHaveLength(1);
    await pass(50);
    expect(judged).toHaveLength(2);
  });

  it('hold back the records that they overlap, and only those', async () => {
    const released: RequestState[] = [];
    const release = (state: RequestState): void => void released.push(state);
    expect(pending.hold(request(50), release)).toBe(false);
    pending.add(block(0, 100));
    const victim = request(50);
    expect(pending.hold(victim, release)).toBe(true);
    expect(pending.hold(request(100), release)).toBe(false);
    await pass(90);
    expect(released).toEqual([]);
    await pass(15);
    expect(released).toEqual([victim]);
  });

  it('hold back no record for longer than those that it overlaps: under load there is always a later one', async () => {
    const released: RequestState[] = [];
    pending.add(block(0, 100));
    pending.hold(request(50, 101), (state) => released.push(state));
    for (let i = 0; i < 10 && released.length === 0; i++) {
      await pass(50);
      pending.add(block(nowMs - 45, nowMs));
    }
    expect(nowMs).toBe(200);
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
    pending = new PendingBlocks(fails, (error) => failures.push(error));
    pending.add(block(0, 100));
    pending.hold(request(50), fails);
    await pass(102);
    expect(failures).toHaveLength(2);
    await pending.settled();
  });

  it('can be waited for', async () => {
    pending.add(block(0, 100));
    let settled = false;
    void pending.settled().then(() => (settled = true));
    await pass(20);
    expect(settled).toBe(false);
    await pass(90);
    expect(settled).toBe(true);
    await pending.settled();
  });
});
