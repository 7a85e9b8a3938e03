import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { Beat } from '../../../src/event-loop/beat.js';
import { timingOf } from '../../../src/event-loop/timing.js';
import { Watchdog } from '../../../src/event-loop/watchdog.js';
import { until } from '../../fixtures/until.js';

const CHANNEL = 'nestjs-perf:probe:unit';
const timing = timingOf(50);
const reporter = () => {
  const told: string[] = [];
  const keep = (message: string): void => void told.push(message);
  return { told, report: new OncePerCause({ log: keep, warn: keep, error: keep }, () => 0) };
};

describe('the watchdog', () => {
  it('runs until it is told to stop, and ends by itself', async () => {
    const { told, report } = reporter();
    const { words } = new Beat(50, performance.now(), () => {});
    const watchdog = new Watchdog(words, timing, CHANNEL, report);
    watchdog.start();
    expect(watchdog.running).toBe(true);
    await watchdog.stop();
    expect(watchdog.running).toBe(false);
    expect(told).toEqual([]);
  });

  it('whose thread ends by an error says so, and is waited for no longer', async () => {
    const { told, report } = reporter();
    // Memory that is not shared cannot be waited on.
    const watchdog = new Watchdog(new Int32Array(8), timing, CHANNEL, report);
    watchdog.start();
    await until('the thread has ended', () => told.length > 0);
    expect(told).toEqual([
      expect.stringMatching(
        /^the event-loop watchdog ended: .*shared.*\. Blocks are still measured, but no longer traced to requests\.$/i,
      ),
    ]);
    expect(watchdog.running).toBe(false);
    await watchdog.stop();
  });

  it('that cannot even begin says so, and starting it does not throw', () => {
    const { told, report } = reporter();
    const { words } = new Beat(50, performance.now(), () => {});
    // What cannot be sent to a thread.
    const watchdog = new Watchdog(words, timing, (() => {}) as never, report);
    watchdog.start();
    expect(told).toHaveLength(1);
    expect(watchdog.running).toBe(false);
  });
});
