import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { requestContext, RequestState } from '../../../src/request/request-state.js';
import { Beat, MODE, WORD } from '../../../src/event-loop/beat.js';
import { planTiming } from '../../../src/event-loop/event-loop.options.js';
import type { Sample } from '../../../src/event-loop/sample.js';
import { Sampler } from '../../../src/event-loop/sampler.js';
import { until } from '../../fixtures/until.js';

const owner = {
  deferrer: null,
  experiments: null,
  sharedAnswers: null,
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
    beat = new Beat(nowMs());
    const report = new OncePerCause({ log() {}, warn() {}, error() {} }, nowMs);
    sampler = new Sampler(beat.words, planTiming(50), owner, false, report);
    received = [];
    sampler.onSample = (sample) => void received.push(sample);
    sampler.start();
  });
  afterEach(() => {
    void sampler.worker.stop();
    sampler.close();
  });
  const wake = (): void => {
    Atomics.store(beat.words, WORD.mode, MODE.awake);
    sampler.worker.wake();
  };

  it('hands on what ran and for which request, at the next tick and not in the interrupt', async () => {
    wake();
    const state = new RequestState(null, null, 0, owner);
    let turnedMs = 0;
    await until('a sample of the function', () => {
      requestContext.run(state, () => renderRows(60));
      const before = received.length;
      renderRows(10);
      expect(received).toHaveLength(before);
      turnedMs = nowMs();
      sampler.turned();
      beat.at(nowMs());
      return received.some(
        ({ frames, state: seen }) => seen === state && frames.some(({ name }) => name === 'renderRows'),
      );
    });
    expect(sampler.within(0, turnedMs)).toEqual([]);
  });

  it('keeps the samples of a time until the next tick', async () => {
    wake();
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

  it('looks positions up in the maps, as far as its thread answers; the rest are those of the compiled code', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'perf-sampler-'));
    const file = join(folder, 'main.js');
    writeFileSync(file, `own();\n//# sourceMappingURL=main.js.map`);
    writeFileSync(`${file}.map`, JSON.stringify({ version: 3, sources: ['main.ts'], names: [], mappings: 'AAIA' }));
    const own = { file, line: 1, column: 1 };
    const locate = await sampler.locate([own, { ...own, file: 'node:fs' }, { ...own, file: null }]);
    const compiled = `${file}:1:1`;
    expect([locate(own), locate({ ...own, file: 'node:fs' })]).toEqual([
      `${join(folder, 'main.ts')}:5:1`,
      'node:fs:1:1',
    ]);
    expect(locate({ ...own, line: 2 })).toBe(compiled.replace(':1:1', ':2:1'));
    void sampler.worker.stop();
    expect((await sampler.locate([own]))(own)).toBe(compiled);
    rmSync(folder, { recursive: true });
  });
});
