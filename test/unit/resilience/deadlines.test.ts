import { describe, expect, it, vi } from 'vitest';
import { Deadlines } from '../../../src/resilience/deadlines.js';
import { fakeLoop } from '../../fixtures/fake-loop.js';

const { nowMs, block, turn } = fakeLoop();

const started = (deadlines: Deadlines, forMs: number) => {
  const expired = vi.fn<(blockedMs: number, atMs: number) => void>();
  return { expired, deadline: deadlines.start(nowMs(), nowMs() + forMs, expired) };
};

describe('deadlines', () => {
  it('expire when they are due, each once, and not when they have been ended', async () => {
    const deadlines = new Deadlines(nowMs);
    const [late, kept, ended] = [started(deadlines, 50), started(deadlines, 500), started(deadlines, 45)];
    expect(deadlines.end(ended.deadline)).toBe(true);
    await turn(49);
    expect(late.expired).not.toHaveBeenCalled();
    await turn(5);
    expect(late.expired.mock.calls).toEqual([[0, 1_050]]);
    expect(deadlines.end(late.deadline)).toBe(false);
    expect([kept.expired.mock.calls, ended.expired.mock.calls]).toEqual([[], []]);
  });

  it('that are shorter than the last one still come in time', async () => {
    const deadlines = new Deadlines(nowMs);
    const [long, short] = [started(deadlines, 1_000), started(deadlines, 3)];
    await turn(6);
    expect([long.expired.mock.calls.length, short.expired.mock.calls.length]).toEqual([0, 1]);
  });

  it('tell for how long of them the loop was blocked', async () => {
    const deadlines = new Deadlines(nowMs);
    const call = started(deadlines, 300);
    await turn(10);
    block(400);
    await turn(20);
    expect(call.expired).toHaveBeenCalledTimes(1);
    expect(call.expired.mock.calls[0]![0]).toBeGreaterThan(370);
    expect(call.expired.mock.calls[0]![0]).toBeLessThanOrEqual(400);
  });

  it('tell nothing of a block before they started', async () => {
    const deadlines = new Deadlines(nowMs);
    started(deadlines, 5_000);
    await turn(10);
    block(400);
    const call = started(deadlines, 100);
    await turn(120);
    expect(call.expired).toHaveBeenCalledTimes(1);
    expect(call.expired.mock.calls[0]![0]).toBeLessThan(30);
  });

  it('wait for the sockets to be read once after they are due', () => {
    const deadlines = new Deadlines(nowMs);
    const call = started(deadlines, 30);
    block(31);
    vi.runOnlyPendingTimers();
    expect(call.expired).not.toHaveBeenCalled();
    // Its answer was there.
    expect(deadlines.end(call.deadline)).toBe(true);
    vi.runAllTimers();
    expect(call.expired).not.toHaveBeenCalled();
  });

  it('leave no timer when nothing is under way', async () => {
    // Of other suites of this process.
    const others = vi.getTimerCount();
    const deadlines = new Deadlines(nowMs);
    const { deadline } = started(deadlines, 1_000);
    deadlines.end(deadline);
    await turn(25);
    expect(vi.getTimerCount()).toBe(others);
    started(deadlines, 1_000);
    deadlines.end(started(deadlines, 1_000).deadline);
    expect(vi.getTimerCount()).toBe(others + 1);
  });

  it('are kept by timers that hold nothing open', async () => {
    // By hand: a spy of Vitest on a faked timer outlives the fake clock (4.1).
    const before = globalThis.setTimeout;
    const timers: NodeJS.Timeout[] = [];
    const heard = (run: () => void, ms?: number): NodeJS.Timeout => {
      const timer = before(run, ms);
      timers.push(timer);
      return timer;
    };
    globalThis.setTimeout = heard as typeof setTimeout;
    try {
      const deadlines = new Deadlines(nowMs);
      const { expired } = started(deadlines, 100);
      await turn(120);
      expect(expired).toHaveBeenCalledTimes(1);
    } finally {
      globalThis.setTimeout = before;
    }
    const held = timers.map((timer) => timer.hasRef());
    expect(held.length).toBeGreaterThan(3);
    expect(held).not.toContain(true);
  });
});
