import { readdirSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { Beat } from '../../../src/event-loop/loop-watch.js';
import { AWAKE, MODE } from '../../../src/event-loop/beat.js';
import { timingOf } from '../../../src/event-loop/event-loop.options.js';
import { Watchdog } from '../../../src/event-loop/watchdog.js';
import { until } from '../../fixtures/until.js';

const PROBE = 'nestjs-perf:probe:unit';
const timing = timingOf(50);

describe('the watchdog', () => {
  let told: string[];
  let words: Int32Array;
  let watchdog: Watchdog;
  const create = (memory = words, probe = PROBE): Watchdog => {
    const keep = (message: string): void => void told.push(message);
    return new Watchdog(memory, timing, probe, new OncePerCause({ log: keep, warn: keep, error: keep }, () => 0));
  };
  beforeEach(() => {
    told = [];
    ({ words } = new Beat(50, performance.now(), () => {}));
    watchdog = create();
  });

  it('runs until it is told to stop, and ends by itself', async () => {
    watchdog.start();
    expect(watchdog.running).toBe(true);
    watchdog.stop();
    expect(watchdog.running).toBe(false);
    expect(told).toEqual([]);
  });

  // While a thread ends, what its looks have left on the main thread must not be taken away: that aborts the process.
  it('that has looked ends when the main thread has come round, and not before', async () => {
    const threads = (): string[] => readdirSync('/proc/self/task');
    let looks = 0;
    Reflect.set(globalThis, PROBE, () => (looks += 1));
    const before = threads();
    watchdog.start();
    Atomics.store(words, MODE, AWAKE);
    await until('a look', () => looks > 0);
    Reflect.deleteProperty(globalThis, PROBE);
    const its = threads().filter((thread) => !before.includes(thread));
    watchdog.stop();
    const endMs = performance.now() + 500;
    while (performance.now() < endMs);
    expect(threads()).toEqual(expect.arrayContaining(its));
    await until('the thread has ended', () => its.some((thread) => !threads().includes(thread)));
  });

  it('whose thread ends by an error says so, and is waited for no longer', async () => {
    // Memory that is not shared cannot be waited on.
    watchdog = create(new Int32Array(8));
    watchdog.start();
    await until('the thread has ended', () => told.length > 0);
    expect(told).toEqual([
      expect.stringMatching(
        /^the event-loop watchdog ended: .*shared.*\. Blocks are still measured, but no longer traced to requests\.$/i,
      ),
    ]);
    expect(watchdog.running).toBe(false);
    watchdog.stop();
  });

  it('whose looks fail one after the other says so once', async () => {
    // What is evaluated is no program then.
    const { toString } = Function.prototype;
    // eslint-disable-next-line no-extend-native
    Function.prototype.toString = function (this: () => unknown): string {
      return toString.call(this).replaceAll('session.connectToMainThread()', 'null.session');
    };
    watchdog.start();
    // eslint-disable-next-line no-extend-native
    Function.prototype.toString = toString;
    Atomics.store(words, MODE, AWAKE);
    Atomics.notify(words, MODE);
    await until('the looks have failed', () => told.length > 0);
    expect(told[0]).toMatch(
      /^event-loop blocks are measured, but not traced to requests: the inspector does not answer/,
    );
    watchdog.stop();
  });

  it('tells where positions are in the sources, and nothing when it is not there', async () => {
    const position = { file: '/srv/render.js', line: 4, column: 2 };
    expect(await watchdog.locate([position], 1_000)).toBeNull();
    watchdog.start();
    expect(await watchdog.locate([position], 20_000)).toEqual(['/srv/render.js:4:2']);
    expect(await watchdog.locate([position], 0)).toBeNull();
    const asked = watchdog.locate([position], 20_000);
    watchdog.stop();
    expect(await asked).toBeNull();
  });

  it('that cannot even begin says so, and starting it does not throw', () => {
    // What cannot be sent to a thread.
    watchdog = create(words, (() => {}) as never);
    watchdog.start();
    expect(told).toHaveLength(1);
    expect(watchdog.running).toBe(false);
  });
});
