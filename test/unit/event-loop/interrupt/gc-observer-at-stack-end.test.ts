import { expect, it } from 'vitest';
import { performance } from 'node:perf_hooks';
import { GcObserver } from '../../../../src/event-loop/interrupt/gc-observer.js';

// Alone in its file: V8 must not have compiled Node's `observe()` before, which takes more stack than to call it.
it('collections are observed also when the first looks came at the very end of the stack', async () => {
  const gc = new GcObserver(50, false);
  gc.start();
  const lookFromTheEnd = (): number => {
    try {
      return lookFromTheEnd() + 1;
    } catch {
      gc.looked(0, 0);
      return 0;
    }
  };
  lookFromTheEnd();

  gc.looked(0, 0);
  const fromMs = performance.now();
  (globalThis as { gc?: () => void }).gc!();
  const toMs = performance.now();
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  expect(gc.within(fromMs, toMs)).toBeGreaterThan(0);
  gc.stop();
});
