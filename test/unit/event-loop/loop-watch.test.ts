import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MODE, WORD } from '../../../src/event-loop/beat.js';
import { planTiming } from '../../../src/event-loop/event-loop.options.js';
import { LoopWatch, type Block } from '../../../src/event-loop/loop-watch.js';

/** A loop whose time passes only when told: waiting for events, or running. */
class Loop {
  nowMs = 1_000;
  idle = 0;
  cpu = 0;
  inFlight = 0;
  readonly blocks: Block[] = [];
  /** The blocks that were told before each tick. */
  readonly ticks: number[] = [];
  readonly watch = new LoopWatch(
    planTiming(50),
    { nowMs: () => this.nowMs, idleMs: () => this.idle, cpuMs: () => this.cpu },
    () => this.inFlight,
    (block) => this.blocks.push(block),
    () => this.ticks.push(this.blocks.length),
  );

  /** Waits for events; ticks come in time. */
  async wait(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) {
      this.nowMs += 1;
      this.idle += 1;
      await vi.advanceTimersByTimeAsync(1);
    }
  }

  /** Runs without a tick, then the overdue tick comes. */
  async run(ms: number, { onCpu = 1 } = {}): Promise<void> {
    this.nowMs += ms;
    this.cpu += ms * onCpu;
    await vi.advanceTimersByTimeAsync(ms);
  }
}

describe('watching the loop', () => {
  let loop: Loop;
  beforeEach(() => {
    vi.useFakeTimers();
    loop = new Loop();
    loop.watch.start();
  });
  afterEach(() => {
    loop.watch.stop();
    vi.useRealTimers();
  });
  const request = (): void => {
    loop.inFlight += 1;
    loop.watch.requestStarted(loop.nowMs);
  };

  it('says nothing while the loop turns', async () => {
    request();
    await loop.wait(500);
    await loop.run(45);
    await loop.wait(500);
    expect(loop.blocks).toEqual([]);
  });

  it('tells a block with its start and end', async () => {
    request();
    await loop.wait(37);
    const startMs = loop.nowMs;
    await loop.run(120);
    await loop.wait(50);
    expect(loop.blocks).toHaveLength(1);
    const { startMs: from, endMs: to } = loop.blocks[0]!;
    expect(to).toBe(startMs + 120);
    // Nothing proves that the loop turned between the last tick and the start: at most one tick is too much.
    expect(startMs - from).toBeLessThanOrEqual(10);
    expect(startMs - from).toBeGreaterThanOrEqual(0);
  });

  it('tells each tick, after the block that it has ended', async () => {
    request();
    await loop.wait(20);
    loop.ticks.length = 0;
    await loop.run(120);
    expect(loop.ticks[0]).toBe(1);
  });

  it('takes no further proof from requests that follow one within half a millisecond', () => {
    const seq = (): number => loop.watch.beat.words[WORD.seq]!;
    request();
    const first = seq();
    loop.nowMs += 0.4;
    request();
    loop.watch.requestEnded(loop.nowMs);
    expect(seq()).toBe(first);
    loop.nowMs += 0.1;
    request();
    expect(seq()).toBe(first + 1);
    loop.nowMs += 0.5;
    loop.watch.requestEnded(loop.nowMs);
    expect(seq()).toBe(first + 2);
    // A block is told from the last proof on, and by the first request after it.
    loop.nowMs += 0.4;
    request();
    loop.nowMs += 50;
    request();
    expect(loop.blocks).toHaveLength(1);
    expect(loop.blocks[0]!.startMs).toBeCloseTo(loop.nowMs - 50.4, 3);
  });

  it('does not count time that the loop waited: the process was stopped', async () => {
    request();
    await loop.wait(20);
    loop.nowMs += 400;
    loop.idle += 400;
    await vi.advanceTimersByTimeAsync(400);
    expect(loop.blocks).toEqual([]);
  });

  it('takes a request’s start for proof that the loop turned', async () => {
    request();
    await loop.wait(20);
    loop.nowMs += 28;
    request();
    loop.nowMs += 28;
    await vi.advanceTimersByTimeAsync(56);
    expect(loop.blocks).toEqual([]);
  });

  it('tells a turn that came late as a whole, though no part of it did', async () => {
    request();
    await loop.wait(20);
    for (let i = 0; i < 20; i++) {
      loop.nowMs += 8;
      loop.cpu += 8;
      request();
    }
    await vi.advanceTimersByTimeAsync(160);
    expect(loop.blocks).toHaveLength(1);
    expect(loop.blocks[0]).toMatchObject({ inPieces: true });
    expect(loop.blocks[0]!.endMs - loop.blocks[0]!.startMs).toBeCloseTo(160, -1);
  });

  it.each<[string, (part: { slices: () => void; block: () => void }) => void]>([
    ['before', ({ slices, block }) => (slices(), block())],
    ['after', ({ slices, block }) => (block(), slices())],
    ['before and after', ({ slices, block }) => (slices(), block(), slices())],
  ])('tells no time twice where a turn was late %s a block', async (_when, turn) => {
    request();
    await loop.wait(20);
    const fromMs = loop.nowMs;
    const pass = (ms: number): void => {
      loop.nowMs += ms;
      loop.cpu += ms;
      request();
    };
    turn({
      slices: () => {
        for (let i = 0; i < 10; i++) pass(8);
      },
      block: () => pass(100),
    });
    await vi.advanceTimersByTimeAsync(loop.nowMs - fromMs);
    const told = loop.blocks.toSorted((a, b) => a.startMs - b.startMs);
    expect(told.filter(({ inPieces }) => !inPieces)).toHaveLength(1);
    expect(told.filter(({ inPieces }) => inPieces)).toHaveLength(told.length - 1);
    expect(told.length).toBeGreaterThan(1);
    for (const [i, { endMs }] of told.entries()) expect(endMs).toBeLessThanOrEqual(told[i + 1]?.startMs ?? loop.nowMs);
    const sumMs = told.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
    expect(sumMs).toBeCloseTo(loop.nowMs - fromMs, -1);
    expect(told.every(({ startMs }) => startMs >= fromMs - 10)).toBe(true);
  });

  it('tells how much of it was on a CPU', async () => {
    request();
    await loop.wait(100);
    await loop.run(100, { onCpu: 0.1 });
    expect(loop.blocks[0]!.cpuRatio).toBeLessThan(0.2);
    await loop.wait(100);
    await loop.run(100, { onCpu: 1 });
    expect(loop.blocks[1]!.cpuRatio).toBeGreaterThan(0.9);
  });

  it('ticks fast only while requests are in flight, and a while after', async () => {
    const { words } = loop.watch.beat;
    const beats = async (ms: number): Promise<number> => {
      const before = words[WORD.seq]!;
      await loop.wait(ms);
      return words[WORD.seq]! - before;
    };
    expect(await beats(1_000)).toBe(2);
    expect(words[WORD.mode]).toBe(MODE.parked);
    request();
    expect(words[WORD.mode]).toBe(MODE.awake);
    expect(await beats(1_000)).toBe(100);
    loop.inFlight = 0;
    await loop.wait(1_200);
    expect(words[WORD.mode]).toBe(MODE.parked);
    expect(await beats(1_000)).toBe(2);
  });

  it('stops the fast tick for requests that go on and on when nothing else has come for half a minute', async () => {
    const { words } = loop.watch.beat;
    request();
    await loop.wait(30_000);
    // The loop's time goes by whole milliseconds here, so the tick is of this very moment.
    request();
    await loop.wait(100);
    expect(words[WORD.mode]).toBe(MODE.awake);
    await loop.wait(31_000);
    expect(words[WORD.mode]).toBe(MODE.parked);
    request();
    expect(words[WORD.mode]).toBe(MODE.awake);
  });

  it('finds background work that blocks while no request is in flight, and since when it can have', async () => {
    await loop.wait(850);
    await loop.run(500);
    expect(loop.blocks).toHaveLength(1);
    const { sinceMs, startMs, endMs } = loop.blocks[0]!;
    // The last tick: 350 ms before it.
    expect([endMs - startMs, endMs - sinceMs]).toEqual([500, 850]);
  });

  it.each(['tick', 'request'])(
    'tells nobody what the loop did before the first %s: the application boots',
    async (first) => {
      await loop.wait(100);
      if (first === 'request') {
        loop.nowMs += 700;
        request();
      } else await loop.run(700);
      expect(loop.blocks).toEqual([]);
      await loop.run(600);
      expect(loop.blocks).toHaveLength(1);
    },
  );

  it('forgets old delays and blocks: snapshots tell of the last window', async () => {
    request();
    await loop.wait(100);
    await loop.run(300);
    await loop.wait(100);
    const fresh = loop.watch.statistics.snapshot(loop.nowMs);
    expect(fresh.delayMs.max).toBeGreaterThan(250);
    expect(fresh).toMatchObject({ blocks: 1 });
    expect(fresh.blockedMs).toBeGreaterThanOrEqual(300);
    await loop.wait(10_100);
    const later = loop.watch.statistics.snapshot(loop.nowMs);
    expect(later.delayMs.max).toBeLessThan(20);
    expect(later).toMatchObject({ blocks: 0, blockedMs: 0 });
  });
});
