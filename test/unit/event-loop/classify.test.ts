import { describe, expect, it } from 'vitest';
import { classify, type Evidence } from '../../../src/event-loop/classify.js';
import { frame, probe, deep, resumed, look, late, looks, evidence, judged } from '../../fixtures/looks.js';

describe('nobody is named for one look', () => {
  it.each<[string, Partial<Evidence<string>>, object]>([
    [
      'seen for most of the window',
      { looks: looks('a', 20, 90) },
      { cause: 'javascript', culprit: 'a', suspect: null },
    ],
    ['seen once', { looks: [look('a', 20)] }, { cause: 'unknown', culprit: null, suspect: null }],
    [
      'seen alone, and hardly on the CPU',
      { looks: [look('a', 20), look('a', 50)], cpuRatio: 0.4 },
      { cause: 'unknown', culprit: null, suspect: null },
    ],
    [
      'seen at both ends, another between',
      { looks: [look('a', 20), look('b', 50), look('a', 90)] },
      { cause: 'pile-up', culprit: null, suspect: null },
    ],
    [
      'seen again and again, another between each time',
      { looks: [look('a', 10), look('b', 20), look('a', 45), look('b', 50), look('a', 80)] },
      { cause: 'pile-up', culprit: null, suspect: null },
    ],
    [
      'two halves',
      { looks: [...looks('a', 20, 45), ...looks('b', 55, 90)] },
      { cause: 'pile-up', culprit: null, suspect: null },
    ],
    [
      'large, then small',
      { looks: [...looks('a', 20, 90), look('b', 97)] },
      { cause: 'javascript', culprit: 'a', suspect: null },
    ],
    ['small, then large', { looks: [...looks('b', 20, 95)] }, { cause: 'javascript', culprit: 'b', suspect: null }],
    [
      'many, one look each',
      { looks: Array.from({ length: 8 }, (_, i) => look(`r${i}`, 20 + i * 10)) },
      { cause: 'pile-up', culprit: null, suspect: null },
    ],
    [
      'code of nobody that is known',
      { looks: looks(null, 20, 90) },
      { cause: 'javascript', culprit: null, suspect: null },
    ],
    [
      'a stack too deep to tell',
      { looks: looks(null, 20, 90).map((l) => ({ ...l, cut: true })) },
      { cause: 'unknown', culprit: null, suspect: null },
    ],
    ['nobody looked', {}, { cause: 'unknown', culprit: null, suspect: null }],
  ])('%s', (_name, given, expected) => {
    expect(judged(given)).toEqual(expected);
  });

  it('proves no more than the time between the looks', () => {
    expect(classify(evidence({ looks: looks('a', 20, 90) })).provenMs).toBe(70);
  });
});

describe('a late look proves a native call, not whose', () => {
  it('suspects whose function was resumed', () => {
    expect(judged({ looks: [late('b', 20, 98)] })).toEqual({ cause: 'javascript', culprit: null, suspect: 'b' });
  });

  it('suspects whose route function settled next, rather', () => {
    expect(judged({ looks: [late('b', 20, 98, { settledNext: 'a' })] }).suspect).toBe('a');
    expect(judged({ looks: [late(null, 20, 98, { settledNext: 'a' })] }).suspect).toBe('a');
  });

  const inReadFile = [...probe, frame('isUserFd', 'node:fs'), frame('readFileSync', 'node:fs'), ...resumed.slice(2)];

  it('proves it where the stack shows a synchronous call of Node’s, entered before it ended', () => {
    expect(judged({ looks: [late('a', 20, 98, { frames: inReadFile })] })).toMatchObject({ culprit: 'a' });
  });

  it('proves it where that call of Node’s own loops: it is beyond its first line', () => {
    const frames = [...probe, { ...frame('readFileSync', 'node:fs'), line: 9 }, ...resumed.slice(2)];
    expect(judged({ looks: [late('a', 20, 98, { frames })] })).toMatchObject({ culprit: 'a' });
  });

  it('does not take a call of Node’s that is only just entered for one that was made', () => {
    const frames = [...probe, ...inReadFile.slice(3)];
    expect(judged({ looks: [late('b', 20, 98, { frames })] })).toMatchObject({ culprit: null, suspect: 'b' });
  });

  it('does not take one late look for proof because other functions run: it may have been preempted, or collecting', () => {
    expect(judged({ looks: [late('b', 20, 98, { frames: deep })] })).toMatchObject({ culprit: null, suspect: 'b' });
    expect(judged({ looks: [late('b', 20, 98, { frames: deep, source: 'sync' })] }).culprit).toBeNull();
    expect(judged({ looks: [look('b', 20), late('b', 22, 98, { frames: deep })] }).culprit).toBeNull();
  });

  it('takes several for proof', () => {
    const several = [late('a', 20, 45), late('a', 48, 75), late('a', 78, 99)].map((l) => ({ ...l, frames: deep }));
    expect(judged({ looks: several }).culprit).toBe('a');
  });

  it('does not count what the machine held back', () => {
    const looks = [late('a', 20, 98, { frames: inReadFile })];
    expect(judged({ looks, runDelayMs: 35 })).toMatchObject({ culprit: null, suspect: 'a' });
    expect(judged({ looks, runDelayMs: 20 })).toMatchObject({ culprit: 'a' });
  });

  it('does not take the loop that runs one microtask after another for a caller', () => {
    const frames = [
      ...probe,
      frame('handler'),
      frame('runMicrotasks', 'node:internal/process/task_queues'),
      frame('x'),
    ];
    expect(judged({ looks: [late('b', 20, 98, { frames })] }).culprit).toBeNull();
  });

  it('does not take an awaiting caller for a running one', () => {
    const frames = [...probe, frame('inner'), frame('handler', '/app/src/x.js', true)];
    expect(judged({ looks: [late('b', 20, 98, { frames })] }).culprit).toBeNull();
  });

  it('proves a call that a safepoint follows', () => {
    const frames = [...probe, frame('perfSafepoint'), frame('parse'), ...resumed.slice(2)];
    expect(judged({ looks: [late('a', 20, 98, { frames })] }).culprit).toBe('a');
  });

  it('counts the time before the call that the same request was seen', () => {
    const given = { looks: [...looks('a', 20, 80), late('a', 85, 98)] };
    expect(classify(evidence(given))).toMatchObject({ culprit: 'a', provenMs: 64.5 + 0.5 });
  });

  it('names nobody for a short late look', () => {
    expect(judged({ looks: [late('b', 20, 50), look('c', 80)] })).toEqual({
      cause: 'pile-up',
      culprit: null,
      suspect: null,
    });
  });
});

describe('cause', () => {
  const mine = { looks: looks('a', 20, 90) };
  it.each<[string, Partial<Evidence<string>>, string]>([
    ['off the CPU', { ...mine, cpuRatio: 0.05 }, 'sync-io'],
    ['mostly collecting garbage', { ...mine, gcMs: 60 }, 'gc'],
    ['collecting in parallel threads, the main one waiting', { ...mine, gcMs: 60, cpuRatio: 0.1 }, 'gc'],
    ['some garbage collection does not make it input or output', { ...mine, gcMs: 30, cpuRatio: 0.2 }, 'javascript'],
    [
      'the watchdog starved all the time, even inside a collection',
      { ...mine, starvedMs: 75, gcMs: 90, cpuRatio: 0.2 },
      'not-scheduled',
    ],
    [
      'starved, but the request used a threshold’s worth of CPU',
      { ...mine, starvedMs: 75, cpuRatio: 0.6 },
      'javascript',
    ],
    [
      'starved, and what was seen running was background code',
      { looks: looks(null, 20, 90), starvedMs: 75 },
      'not-scheduled',
    ],
    ['hardly on a CPU, but for waiting in the run queue', { ...mine, cpuRatio: 0.25, runDelayMs: 45 }, 'javascript'],
    [
      'the watchdog starved half the time, the main thread hardly ran',
      { ...mine, starvedMs: 55, cpuRatio: 0.4 },
      'not-scheduled',
    ],
    [
      'the watchdog starved half the time, the main thread ran',
      { ...mine, starvedMs: 55, cpuRatio: 0.9 },
      'javascript',
    ],
    ['the main thread stood in the run queue', { ...mine, runDelayMs: 60, cpuRatio: 0.4 }, 'not-scheduled'],
    [
      'throttled, and too short for a report without that',
      { ...mine, throttled: true, runDelayMs: 35, cpuRatio: 0.6, thresholdMs: 70 },
      'not-scheduled',
    ],
    [
      'delayed just as long, but not throttled',
      { ...mine, throttled: false, runDelayMs: 35, cpuRatio: 0.6, thresholdMs: 70 },
      'javascript',
    ],
    ['throttled for a little of it', { ...mine, throttled: true, runDelayMs: 45, cpuRatio: 0.55 }, 'javascript'],
    ['asleep, and throttled at another time', { ...mine, throttled: true, cpuRatio: 0.05 }, 'sync-io'],
    ['a debugger paused it', { ...mine, cpuRatio: 0.01, debugged: true }, 'unknown'],
    ['a debugger is attached, the program ran', { ...mine, debugged: true }, 'javascript'],
  ])('%s: %s', (_name, given, cause) => {
    expect(classify(evidence(given)).cause).toBe(cause);
  });

  it.each(['gc', 'not-scheduled', 'unknown'])('%s names no culprit', (cause) => {
    const given = {
      gc: { gcMs: 60 },
      'not-scheduled': { starvedMs: 80, cpuRatio: 0.2 },
      unknown: { debugged: true, cpuRatio: 0 },
    }[cause];
    expect(classify(evidence({ ...mine, ...given }))).toMatchObject({ cause, culprit: null });
  });
});
