import { describe, expect, it, vi } from 'vitest';
import { timed } from '../../../src/upstream/timed.js';
import { Targets } from '../../../src/upstream/target.js';
import { Upstream } from '../../../src/upstream/upstream.js';

describe('a timed call that fails', () => {
  it('is told as an unhandled rejection where nobody handles it', async () => {
    const told = vi.fn();
    const before = process.rawListeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', told);
    try {
      const upstream = new Upstream(
        new Targets({ target: null, maxTargets: 10 }, { report() {} } as never),
        { inFlight: 0 } as never,
        clock,
        10,
      );
      const failed = new Error('on purpose');
      void timed(upstream, 'a target', () => Promise.reject(failed));
      await expect.poll(() => told.mock.calls.map(([error]) => error as Error)).toEqual([failed]);
    } finally {
      process.removeAllListeners('unhandledRejection');
      for (const listener of before) process.on('unhandledRejection', listener as () => void);
    }
  });
});

const clock = { nowMs: () => performance.now(), idleMs: () => 0 };
