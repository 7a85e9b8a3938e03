import { describe, expect, it } from 'vitest';
import { GcObserver } from '../../../src/event-loop/gc-observer.js';

describe('garbage collection inside a window', () => {
  it('is the overlap with it', () => {
    const gc = new GcObserver();
    gc.add(0, 20);
    gc.add(50, 30);
    gc.add(95, 100);
    gc.add(60, 0.5);
    expect(gc.within(10, 100)).toBe(10 + 30 + 5);
    expect(gc.within(300, 400)).toBe(0);
  });

  it('is never more than the window', () => {
    const gc = new GcObserver();
    gc.add(0, 100);
    gc.add(0, 100);
    expect(gc.within(0, 50)).toBe(50);
  });

  it('keeps the latest of many', () => {
    const gc = new GcObserver();
    for (let i = 0; i < 1_000; i++) gc.add(i * 10, 5);
    expect(gc.within(9_900, 10_000)).toBe(50);
  });
});
