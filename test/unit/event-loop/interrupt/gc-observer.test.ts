import { afterEach, describe, expect, it } from 'vitest';
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { GcObserver } from '../../../../src/event-loop/interrupt/gc-observer.js';

const MB = 1e6;
const collect = (globalThis as { gc?: () => void }).gc!;

describe('garbage collection inside a window', () => {
  const gc = new GcObserver(50, false);

  it('is the overlap with it', () => {
    gc.add(0, 20);
    gc.add(50, 30);
    gc.add(95, 100);
    gc.add(60, 0.5);
    expect(gc.within(10, 100)).toBe(10 + 30 + 5);
    expect(gc.within(300, 400)).toBe(0);
  });

  it('is never more than the window', () => {
    gc.add(1_000, 100);
    gc.add(1_000, 100);
    expect(gc.within(1_000, 1_050)).toBe(50);
  });

  it('keeps the latest of many', () => {
    for (let i = 0; i < 1_000; i++) gc.add(i * 10, 5);
    expect(gc.within(9_900, 10_000)).toBe(50);
  });
});

describe('collections are observed', () => {
  let heapBytes = 30 * MB;
  const heap = { measure: () => heapBytes, mostBytes: () => 2 * heapBytes, survivedBytes: () => 5 * MB };
  let gc = new GcObserver(50, false, heap);
  afterEach(() => {
    gc.stop();
    heapBytes = 30 * MB;
    gc = new GcObserver(50, false, heap);
  });

  /** Whether a collection now is seen. Its entry comes within three turns: Node's own, the observer's, and one to be sure. */
  async function seen(): Promise<boolean> {
    const fromMs = performance.now();
    collect();
    const toMs = performance.now();
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    return gc.within(fromMs, toMs) > 0;
  }

  it('not in a small heap while the loop turns', async () => {
    gc.start();
    gc.ticked(0, true);
    expect(await seen()).toBe(false);
    expect(gc.sinceMs).toBe(Infinity);
  });

  it('not before the start', () => {
    gc.ticked(0, false);
    gc.looked(0, 0);
    expect(gc.sinceMs).toBe(Infinity);
  });

  it('while the heap is large: 2 MB for each millisecond of the threshold', async () => {
    gc.start();
    heapBytes = 100 * MB;
    gc.ticked(0, true);
    expect(await seen()).toBe(true);
    for (let ms = 10; ms <= 1_000; ms += 10) gc.ticked(ms, true);
    expect(await seen()).toBe(true);
    heapBytes = 99 * MB;
    gc.ticked(1_100, true);
    expect(await seen()).toBe(true);
    gc.ticked(1_200, true);
    expect(await seen()).toBe(false);
    heapBytes = 100 * MB;
    gc.ticked(1_300, true);
    expect(await seen()).toBe(true);
  });

  it('near the heap’s limit: from half of it on', async () => {
    const halfBytes = getHeapStatistics().heap_size_limit / 2;
    gc = new GcObserver(60_000, false, heap);
    gc.start();
    heapBytes = halfBytes - 1;
    gc.ticked(0, true);
    expect(await seen()).toBe(false);
    heapBytes = halfBytes;
    gc.ticked(100, true);
    expect(await seen()).toBe(true);
  });

  it('where nobody would look at a standstill', async () => {
    gc.start();
    gc.ticked(0, false);
    expect(await seen()).toBe(true);
  });

  it('from the look at a standstill on, and for a second when it was one', async () => {
    gc.start();
    gc.looked(995, 1_000);
    expect(gc.sinceMs).toBe(1_000);
    expect(await seen()).toBe(true);
    gc.stoodStill(1_050);
    gc.ticked(2_000, true);
    expect(await seen()).toBe(true);
    gc.ticked(2_050, true);
    expect(await seen()).toBe(false);
  });

  it('always, where it is cheap', async () => {
    gc = new GcObserver(50, true, heap);
    gc.start();
    gc.ticked(0, true);
    expect(await seen()).toBe(true);
  });

  it('no more once stopped', async () => {
    gc.start();
    gc.looked(0, 0);
    gc.stop();
    gc.looked(1, 1);
    gc.ticked(2, false);
    expect(await seen()).toBe(false);
  });

  it('and what was not, as what may have held a look up: as long as the heap takes, when one was done', async () => {
    gc.start();
    heapBytes = 40 * MB;
    gc.ticked(0, true);
    await new Promise(setImmediate);
    const kept: unknown[] = [];
    // Collections of the young generation only.
    for (let i = 0; i < 200_000; i++) if (kept.push({ i }) > 1_000) kept.length = 0;
    expect(gc.looked(20, 50)).toBe(10);

    gc.stop();
    gc.start();
    await new Promise(setImmediate);
    collect();
    expect(gc.looked(60, 64)).toBe(0);
    gc.stop();
    gc.start();
    await new Promise(setImmediate);
    collect();
    expect(gc.looked(60, 90)).toBe(160);
    // From the first look on they are observed.
    expect(gc.looked(100, 130)).toBe(0);
    // V8 has told of its end, so the next one can be told again.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    gc.stop();
    expect(gc.looked(200, 230)).toBe(10);
    await new Promise(setImmediate);
    collect();
    expect(gc.looked(300, 330)).toBe(160);
  });

  it('by the real heap’s size when nothing else is given', async () => {
    gc = new GcObserver(0.001, false);
    gc.start();
    gc.ticked(0, true);
    expect(await seen()).toBe(true);
    gc.stop();
    gc = new GcObserver(60_000, false);
    gc.start();
    gc.ticked(0, true);
    expect(await seen()).toBe(false);
  });
});
