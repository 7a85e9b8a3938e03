import { describe, expect, it } from 'vitest';
import { classifyBlock, countVotes, type Evidence } from '../../../src/event-loop/block.js';
import type { Sample } from '../../../src/event-loop/sample.js';
import { frame, ofSocket, request, sample, samples } from '../../fixtures/samples.js';

const [mine, other] = [request(), request()];
const block = { sinceMs: 0, startMs: 0, endMs: 100 };
const findOf = (taken: readonly Sample[], over: Partial<Evidence> = {}) =>
  classifyBlock({
    ...block,
    cpuRatio: 1,
    inPieces: false,
    votes: countVotes(taken, block, over.lostMs),
    gcMs: 0,
    lostMs: 0,
    thresholdMs: 50,
    debugged: false,
    ...over,
  });
const ran = samples(mine, 20, 100);

describe('a block', () => {
  it('is of the request whose code ran, and the others waited', () => {
    expect(findOf(ran)).toMatchObject({ cause: 'javascript', request: mine, suspect: null, othersWaited: true });
  });

  it('is suspected of the request whose handle has called, maybe for another: nobody is counted as waiting', () => {
    const found = findOf(samples(mine, 20, 100, { frames: ofSocket }));
    expect(found).toMatchObject({ cause: 'javascript', request: null, suspect: mine, othersWaited: false });
  });

  it('is of nobody where no request’s code ran; its stack is known', () => {
    const found = findOf(samples(null, 20, 100));
    expect(found).toMatchObject({ cause: 'javascript', request: null, suspect: null, othersWaited: true });
    expect(found!.shown).toHaveLength(9);
  });

  it('counts nobody as waiting for the handle of nobody, or for what an ended request has left: it may be their own work', () => {
    for (const one of [samples(null, 20, 100, { frames: ofSocket }), samples(request(10), 20, 100)]) {
      expect(findOf(one)).toMatchObject({ request: null, suspect: null, othersWaited: false });
    }
  });

  it('is unknown without a sample, and nobody is counted as waiting', () => {
    expect(findOf([])).toMatchObject({ cause: 'unknown', request: null, suspect: null, othersWaited: false });
  });

  it('counts nobody as waiting where little of it is known and nobody is named', () => {
    expect(findOf(samples(null, 80, 90))).toMatchObject({ request: null, othersWaited: false });
  });

  it('is suspected of a request that slept in one sample outside of Node’s own calls: the machine may have stood still', () => {
    const once = [sample(mine, 90, { askedMs: 20 })];
    expect(findOf(once)).toMatchObject({ request: mine });
    expect(findOf(once, { cpuRatio: 0.1 })).toMatchObject({ cause: 'sync-io', request: null, suspect: mine });
    const frames = [frame('execSync', 'node:child_process'), frame('handler')];
    expect(findOf([{ ...once[0]!, frames }], { cpuRatio: 0.1 })).toMatchObject({ cause: 'sync-io', request: mine });
  });

  it('is a pile-up where none has half', () => {
    const three = [request(), mine, other].flatMap((state, i) => samples(state, 20 + 30 * i, 40 + 30 * i));
    expect(findOf(three)).toMatchObject({ cause: 'pile-up', request: null, suspect: null });
  });

  it('is a pile-up where no part of it was long, whoever ran', () => {
    expect(findOf(ran, { inPieces: true })).toMatchObject({ cause: 'pile-up', request: null, suspect: null });
  });

  it('waits where the thread slept', () => {
    expect(findOf(ran, { cpuRatio: 0.1 })).toMatchObject({ cause: 'sync-io', request: mine });
    // It waited for a CPU then.
    expect(findOf(ran, { cpuRatio: 0.2, lostMs: 45 })).toMatchObject({ cause: 'javascript', request: mine });
  });

  it.each([{ gcMs: 60 }, { gcMs: 60, cpuRatio: 0.1 }])('is garbage collection for half of the time: %j', (over) => {
    expect(findOf(ran, over)).toMatchObject({ cause: 'gc', request: null, suspect: mine, othersWaited: true });
  });

  it.each([{ lostMs: 60 }, { lostMs: 65, cpuRatio: 0.6 }, { startMs: 40, lostMs: 15, cpuRatio: 0.7 }])(
    'is the machine’s where the process was not scheduled: %j',
    (over) => {
      const found = findOf(samples(mine, 90, 100), { cpuRatio: 0.3, ...over });
      expect(found).toMatchObject({ cause: 'not-scheduled', request: null, suspect: null, othersWaited: true });
    },
  );

  it('is of the request that was seen throughout and used a threshold of CPU, however slow the machine', () => {
    const over = { lostMs: 75, cpuRatio: 0.6 };
    expect(findOf(ran, over)).toMatchObject({ cause: 'javascript', request: mine });
    expect(findOf(ran, { ...over, cpuRatio: 0.4 })).toMatchObject({ cause: 'not-scheduled', request: null });
    const once = samples(mine, 50, 50, { askedMs: 20 });
    expect(findOf(once, over)).toMatchObject({ cause: 'not-scheduled', request: null });
    const suspected = samples(mine, 20, 100, { frames: ofSocket });
    expect(findOf(suspected, over)).toMatchObject({ cause: 'not-scheduled', suspect: null });
  });

  it('is not the machine’s where it would have been reported without the time that it took', () => {
    expect(findOf(samples(null, 20, 100), { lostMs: 20 })).toMatchObject({ cause: 'javascript' });
  });

  it('is none where a debugger holds the program; code that computes under one is', () => {
    expect(findOf(ran, { debugged: true, cpuRatio: 0 })).toBeNull();
    expect(findOf(ran, { debugged: true })).toMatchObject({ request: mine });
  });
});
