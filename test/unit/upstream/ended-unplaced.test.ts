import { describe, expect, it } from 'vitest';
import { Targets } from '../../../src/upstream/target.js';
import { Upstream } from '../../../src/upstream/upstream.js';

describe('calls that are told of when they are over', () => {
  it('count for what is said of a target that got slower', () => {
    const targets = new Targets({ target: null, maxTargets: 10 }, { report() {} } as never);
    const upstream = new Upstream(targets, { inFlight: 0 } as never, { nowMs: () => 0, idleMs: () => 0 }, 10);
    const target = targets.named('prisma database', 'sql');
    for (let window = 0; window < 36; window++) {
      for (let i = 0; i < 10; i++) upstream.endedUnplaced(target, window < 30 ? 20 : 80);
      target.trend.tick();
    }
    const slowdown = target.trend.slowdown()!;
    expect(slowdown.beforeMs).toBeCloseTo(20);
    expect(slowdown.nowMs).toBeCloseTo(80);
  });
});
