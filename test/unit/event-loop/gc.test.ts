import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { GcObserver } from '../../../src/event-loop/gc.js';

describe('garbage collections', () => {
  it('are summed as far as they lie in a stretch of time', () => {
    const gc = new GcObserver();
    gc.add(90, 20);
    gc.add(150, 10);
    gc.add(160, 0.5);
    gc.add(195, 20);
    expect(gc.within(100, 200)).toBe(10 + 10 + 5);
    expect(gc.within(300, 400)).toBe(0);
  });

  it('are never longer than the stretch, and old ones are forgotten', () => {
    const gc = new GcObserver();
    for (let i = 0; i < 300; i++) gc.add(100, 100);
    expect(gc.within(100, 150)).toBe(50);
    for (let i = 0; i < 256; i++) gc.add(1_000, 2);
    expect(gc.within(100, 150)).toBe(0);
  });

  it('of this process are heard of until it is stopped', async () => {
    const gc = new GcObserver();
    gc.start();
    const fromMs = performance.now();
    const kept = Array.from({ length: 300_000 }, (_, i) => ({ i }));
    (globalThis as { gc?: () => void }).gc!();
    const toMs = performance.now();
    while (gc.within(fromMs, toMs) === 0) await delay(1);
    expect(kept.length).toBeGreaterThan(0);
    gc.stop();
    gc.stop();
  });
});
