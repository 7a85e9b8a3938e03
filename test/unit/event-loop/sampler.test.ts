import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { requestContext, RequestState } from '../../../src/request/request-state.js';
import { Beat, MODE, WORD } from '../../../src/event-loop/beat.js';
import { timingOf } from '../../../src/event-loop/event-loop.options.js';
import type { Sample } from '../../../src/event-loop/sample.js';
import { Sampler } from '../../../src/event-loop/sampler.js';
import { until } from '../../fixtures/until.js';

const owner = {
  deferrer: null,
  experiments: null,
  sharedAnswers: null,
  declaredParameters: null,
  nextId: () => 'id',
  findRoute: () => null,
};
const nowMs = (): number => performance.now();
function renderRows(ms: number): void {
  for (const endMs = nowMs() + ms; nowMs() < endMs;);
}

describe('the sampler', () => {
  let beat: Beat;
  let sampler: Sampler;
  let received: Sample[];
  beforeEach(() => {
    beat = new Beat(50, nowMs(), () => {});
    const report = new OncePerCause({ log() {}, warn() {}, error() {} }, nowMs);
    sampler = new Sampler(beat.words, timingOf(50), owner, false, report);
    received = [];
    sampler.onSample = (sample) => void received.push(sample);
    sampler.start();
  });
  afterEach(() => {
    sampler.stop();
    sampler.close();
  });
  const setMode = (mode: number): void => {
    Atomics.store(beat.words, WORD.mode, mode);
    Atomics.notify(beat.words, WORD.mode);
  };

  it('hands on what ran and for which request, at the next tick and not in the interrupt', async () => {
    setMode(MODE.awake);
    const state = new RequestState(null, null, 0, owner);
    await until('a sample of the function', () => {
      requestContext.run(state, () => renderRows(60));
      const before = received.length;
      renderRows(10);
      expect(received).toHaveLength(before);
      sampler.turned();
      beat.at(nowMs());
      return received.some(
        ({ frames, state: seen }) => seen === state && frames.some(({ name }) => name === 'renderRows'),
      );
    });
    expect(sampler.within(0, Infinity)).toEqual([]);
  });

  it('keeps the samples of a time until the next tick', async () => {
    setMode(MODE.awake);
    await until('samples of a block', () => {
      const fromMs = nowMs();
      renderRows(80);
      const inBlock = sampler.within(fromMs, nowMs());
      const none = sampler.within(nowMs() + 1, Infinity);
      sampler.turned();
      beat.at(nowMs());
      return inBlock.length >= 3 && none.length === 0;
    });
  });

  it('takes as many as the rate says, however long the loop stands still', () => {
    // The memory that the thread and the loop share: a profile asks for more, and then for the usual rate again.
    sampler.rate(100);
    expect(beat.words[WORD.rate]).toBe(100);
    sampler.rate(null);
    expect(beat.words[WORD.rate]).toBe(20);
    sampler.rate(1e9);
    expect(beat.words[WORD.rate]).toBe(200);
  });
});
