import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { monotonicMs } from '../../../src/core/clock.js';
import { Recorder } from '../../../src/core/recorder.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { memorySink, type MemorySink } from '../../../src/entries/testing.js';
import { EventLoop } from '../../../src/event-loop/event-loop.js';
import type { LoopWatch } from '../../../src/event-loop/loop-watch.js';
import { RequestLifecycle } from '../../../src/http/request-lifecycle.js';
import { RouteRegistry } from '../../../src/http/route-registry.js';

const THRESHOLD_MS = 50;
const collect = (globalThis as { gc?: () => void }).gc!;

/** Nothing but collections, each of a small heap, until shortly after the threshold: the first look comes in the middle. */
function blockWithCollections(): void {
  const endMs = performance.now() + THRESHOLD_MS + 20;
  while (performance.now() < endMs) collect();
}

describe('collections are observed from the beginning of a block', () => {
  let loop: EventLoop;
  let watch: LoopWatch;
  let lifecycle: RequestLifecycle;
  let recorder: Recorder;
  let sink: MemorySink;
  beforeEach(() => {
    const report = new OncePerCause(console, monotonicMs);
    sink = memorySink();
    recorder = new Recorder([sink], report);
    lifecycle = new RequestLifecycle(monotonicMs, new RouteRegistry(), report);
    const options = { thresholdMs: THRESHOLD_MS, stack: false, replay: null, safepoints: false };
    loop = new EventLoop(options, lifecycle, recorder, report, null);
    ({ watch } = loop as unknown as { watch: LoopWatch });
    loop.install(false);
    loop.start();
  });
  afterEach(async () => {
    await loop.close();
    await recorder.close(1_000);
  });

  /** Share of the collections in a block of nothing but them, since the last call. Machines add blocks of their own. */
  async function shareOfCollections(): Promise<number> {
    await loop.settled();
    await recorder.flush(1_000);
    const blocks = sink.records.splice(0).filter((record) => record.kind === 'block');
    return Math.max(...blocks.map(({ gcMs, durationMs }) => gcMs / durationMs));
  }
  async function watchdogHasBooted(): Promise<void> {
    while (watch.polls === 0) await delay(1);
  }
  const request = (work: () => void): void => {
    const state = lifecycle.begin();
    work();
    lifecycle.end(state, 200, false);
  };

  it('while the watchdog boots', async () => {
    request(blockWithCollections);
    expect(await shareOfCollections()).toBeGreaterThan(0.7);
  });

  // It takes over a second: that long the watchdog stays awake after the last request.
  it('while the watchdog is parked', async () => {
    request(() => {});
    await watchdogHasBooted();
    while (watch.armed) await delay(20);
    blockWithCollections();
    expect(await shareOfCollections()).toBeGreaterThan(0.7);
  });

  it('for a second after another one', async () => {
    request(() => {});
    await watchdogHasBooted();
    request(blockWithCollections);
    expect(await shareOfCollections()).toBeGreaterThanOrEqual(0);
    // Over what a look alone asks for.
    await delay(300);
    request(blockWithCollections);
    expect(await shareOfCollections()).toBeGreaterThan(0.7);
  });
});
