import { describe, expect, it } from 'vitest';
import type { PerfSnapshot } from '../../src/core/snapshot.js';
import { findDeferReasons } from '../../src/defer/defer-lifecycle.js';
import { findLoopReasons } from '../../src/event-loop/loop-statistics.js';
import { findContainerReasons } from '../../src/resources/resource-diagnostics.js';
import { resourceSample } from '../fixtures/records.js';
import { everything } from '../fixtures/sink-host.js';

const MIB = 2 ** 20;
const reasonsOf = ({ eventLoop, resources, defer }: PerfSnapshot): string[] =>
  [...findLoopReasons(eventLoop!), ...findContainerReasons(resources!), ...findDeferReasons(defer!, 100)].map(
    ({ text }) => text,
  );
/** A quiet process. */
function snapshot() {
  const sample = resourceSample();
  const { snapshots } = everything();
  snapshots.resources = resourceSample({
    process: { ...sample.process, heapUsedBytes: 100 * MIB, heapLimitBytes: 500 * MIB },
  });
  return { ...snapshots, eventLoop: snapshots.eventLoop!, resources: snapshots.resources, defer: snapshots.defer! };
}

describe('health', () => {
  it('has no reason when nothing is wrong', () => {
    expect(reasonsOf(snapshot())).toEqual([]);
  });

  it.each<[string, (given: ReturnType<typeof snapshot>) => void]>([
    ['event loop: 97 % busy', ({ eventLoop }) => (eventLoop.utilization = 0.97)],
    [
      'event loop: p99 delay 800 ms, for which requests wait before Node reads them',
      ({ eventLoop }) => (eventLoop.delayMs.p99 = 800),
    ],
    ['throttling: 40 % of CPU periods', ({ resources }) => (resources.cpu.window!.throttledRatio = 0.4)],
    [
      'throttling: by a limit outside the container; the main thread waited 40 % of the time',
      ({ resources }) =>
        Object.assign(resources.cpu.window!, { throttledByHiddenAncestor: true, ms: 1_000, runQueueMs: 400 }),
    ],
    ['memory: heap 480 of 500 MB', ({ resources }) => (resources.process.heapUsedBytes = 480 * MIB)],
    ['deferred work: 85 of 100 pending', ({ defer }) => (defer.pending = 85)],
  ])('is degraded: %s', (reason, wrong) => {
    const given = snapshot();
    wrong(given);
    expect(reasonsOf(given)).toEqual([reason]);
  });

  it('names every reason, and none for what is not known', () => {
    const given = snapshot();
    given.eventLoop.utilization = 1;
    given.defer.pending = 100;
    given.resources.cpu.window = null;
    expect(reasonsOf(given)).toEqual(['event loop: 100 % busy', 'deferred work: 100 of 100 pending']);
  });
});
