import { describe, expect, it, vi } from 'vitest';
import { UpstreamObserver } from '../../../src/upstream/upstream-observer.js';

describe('a timed call that fails', () => {
  it('is told as an unhandled rejection where nobody handles it', async () => {
    const told = vi.fn();
    const before = process.rawListeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', told);
    try {
      const application = { requests: { inFlight: 0 }, nowMs: () => performance.now(), report: { report() {} } };
      const upstream = new UpstreamObserver(
        { target: null, maxTargets: 10, maxTimedCalls: 10 },
        application as never,
        null,
      );
      const failed = new Error('on purpose');
      void upstream.timed('a target', () => Promise.reject(failed));
      await expect.poll(() => told.mock.calls.map(([error]) => error as Error)).toEqual([failed]);
    } finally {
      process.removeAllListeners('unhandledRejection');
      for (const listener of before) process.on('unhandledRejection', listener as () => void);
    }
  });
});
