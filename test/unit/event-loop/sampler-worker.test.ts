import { readdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import workerThreads, { type WorkerOptions } from 'node:worker_threads';
import { beforeEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { Beat, MODE, WORD } from '../../../src/event-loop/beat.js';
import { planTiming } from '../../../src/event-loop/event-loop.options.js';
import { SamplerWorker } from '../../../src/event-loop/sampler-worker.js';
import { until } from '../../fixtures/until.js';

const PROBE = 'nestjs-perf:probe:unit';
const timing = planTiming(50);

describe('the thread of the sampler', () => {
  let told: string[];
  let words: Int32Array;
  let sampler: SamplerWorker;
  const create = (probe = PROBE, given = timing): SamplerWorker => {
    const keep = (message: string): void => void told.push(message);
    return new SamplerWorker(
      words,
      given,
      probe,
      false,
      new OncePerCause({ log: keep, warn: keep, error: keep }, () => 0),
    );
  };
  beforeEach(() => {
    told = [];
    ({ words } = new Beat(performance.now()));
    sampler = create();
  });

  it('runs until it is told to stop, and ends by itself', async () => {
    sampler.start();
    expect(sampler.running).toBe(true);
    void sampler.stop();
    expect(sampler.running).toBe(false);
    expect(told).toEqual([]);
  });

  // While a thread ends, what its samples have left on the main thread must not be taken away: that aborts the process.
  it('that has taken a sample ends when the main thread has come round, and not before', async () => {
    const threads = (): string[] => readdirSync('/proc/self/task');
    let samples = 0;
    Reflect.set(globalThis, PROBE, () => (samples += 1));
    const before = threads();
    sampler.start();
    Atomics.store(words, WORD.mode, MODE.awake);
    await until('a sample', () => samples > 0);
    Reflect.deleteProperty(globalThis, PROBE);
    const its = threads().filter((thread) => !before.includes(thread));
    void sampler.stop();
    const endMs = performance.now() + 500;
    while (performance.now() < endMs);
    expect(threads()).toEqual(expect.arrayContaining(its));
    await until('the thread has ended', () => its.some((thread) => !threads().includes(thread)));
  });

  it('whose thread ends by an error says so, and is waited for no longer', async () => {
    sampler = create(PROBE, null as never);
    sampler.start();
    await until('the thread has ended', () => told.length > 0);
    expect(told).toEqual([
      expect.stringMatching(
        /^the event-loop sampler ended: .*null.*\. Blocks are still measured, but not traced to requests until it starts again in 5 s\.$/,
      ),
    ]);
    expect(sampler.running).toBe(false);
    void sampler.stop();
  });

  it('whose samples fail one after the other says so once', async () => {
    const { Worker } = workerThreads;
    workerThreads.Worker = class extends Worker {
      constructor(program: string, options?: WorkerOptions) {
        super(program.replaceAll('session.connectToMainThread()', 'null.session'), options);
      }
    };
    syncBuiltinESMExports();
    sampler.start();
    workerThreads.Worker = Worker;
    syncBuiltinESMExports();
    Atomics.store(words, WORD.mode, MODE.awake);
    sampler.wake();
    await until('the samples have failed', () => told.length > 0);
    expect(told[0]).toMatch(
      /^event-loop blocks are measured, but not traced to requests: the inspector does not answer/,
    );
    void sampler.stop();
  });

  it('tells where positions are in the sources, and nothing when it is not there', async () => {
    const position = { file: '/srv/render.js', line: 4, column: 2 };
    expect(await sampler.locate([position], 1_000)).toBeNull();
    sampler.start();
    expect(await sampler.locate([position], 20_000)).toEqual(['/srv/render.js:4:2']);
    expect(await sampler.locate([position], 0)).toBeNull();
    const asked = sampler.locate([position], 20_000);
    void sampler.stop();
    expect(await asked).toBeNull();
  });

  it('that cannot even begin says so, and starting it does not throw', () => {
    // What cannot be sent to a thread.
    sampler = create((() => {}) as never);
    sampler.start();
    expect(told).toHaveLength(1);
    expect(sampler.running).toBe(false);
  });
});
