import { describe, expect, it } from 'vitest';
import { countVotes, measureOverlap } from '../../../src/event-loop/block.js';
import type { Sample } from '../../../src/event-loop/sample.js';
import { frame, ofSocket, request, resumed, sample, samples } from '../../fixtures/samples.js';

const block = { sinceMs: 0, startMs: 0, endMs: 100 };
const votesOf = (taken: readonly Sample[], over = {}) => countVotes(taken, { ...block, ...over });

describe('the samples of a block', () => {
  const [mine, other] = [request(), request()];

  it('name the request in whose context they were taken', () => {
    const votes = votesOf(samples(mine, 20, 100));
    expect(votes).toMatchObject({ winner: mine, isCertain: true, isSplit: false });
    expect([...votes.ran]).toEqual([mine]);
    expect(votes.provenMs).toBe(80.5);
  });

  it('name the one of two that has at least half of the time', () => {
    const votes = votesOf([...samples(other, 20, 40), ...samples(mine, 50, 100)]);
    expect(votes).toMatchObject({ winner: mine, isCertain: true });
    expect(new Set(votes.ran)).toEqual(new Set([mine, other]));
  });

  it('count by the time that they represent: a native call of one has one sample, and most of the block', () => {
    const native = sample(mine, 80, { askedMs: 20 });
    expect(votesOf([native, ...samples(other, 82, 100)])).toMatchObject({ winner: mine, isCertain: true });
  });

  it('name nobody where two have the same, and where none has half', () => {
    const halves = [sample(mine, 20, { askedMs: 20 }), sample(other, 40, { askedMs: 40 })];
    expect(votesOf(halves)).toMatchObject({ winner: null, isSplit: true });
    const three = [request(), mine, other].flatMap((state, i) => samples(state, 20 + 30 * i, 40 + 30 * i));
    expect(votesOf(three)).toMatchObject({ winner: null, isSplit: true });
    expect(votesOf(three).shown).toHaveLength(three.length);
    expect(votesOf(three).ran.size).toBe(3);
  });

  it('name nobody for code of no request', () => {
    expect(votesOf([...samples(null, 20, 100)])).toMatchObject({ winner: null, isSplit: false });
    expect(votesOf([...samples(mine, 20, 30), ...samples(null, 40, 100)]).winner).toBeNull();
  });

  it('name no request that has ended before: what it has left behind is the application’s', () => {
    const votes = votesOf(samples(request(10), 20, 100));
    expect(votes).toMatchObject({ winner: null, isSplit: false });
    expect(votes.ran.size).toBe(0);
    expect(votes.shown).toHaveLength(9);
  });

  it('name a request that ends inside it', () => {
    const ends = request(95);
    expect(votesOf(samples(ends, 20, 100)).winner).toBe(ends);
  });

  it('count only where code runs: an idle loop may still show the last request', () => {
    const idle = samples(other, 20, 80, { frames: [] });
    const votes = votesOf([...idle, ...samples(mine, 85, 95)]);
    expect(votes.winner).toBe(mine);
    expect([...votes.ran]).toEqual([mine]);
    expect(votesOf(idle)).toMatchObject({ winner: null, isSplit: false, shown: [], codeMs: 0 });
  });

  it('count where a stack could not be read: code runs then', () => {
    expect(votesOf(samples(mine, 20, 100, { frames: [], cut: true }))).toMatchObject({ winner: mine });
  });

  it('prove nothing where a shared handle has called: the context is of whoever opened it', () => {
    expect(votesOf(samples(mine, 20, 100, { frames: ofSocket }))).toMatchObject({ winner: mine, isCertain: false });
  });

  it('prove nothing where the only one, behind a native call, shows a function that a promise has resumed', () => {
    const native = { askedMs: 20, frames: resumed };
    expect(votesOf([sample(mine, 100, native)])).toMatchObject({ winner: mine, isCertain: false });
    // In time, it is the code that runs.
    expect(votesOf(samples(mine, 20, 100, { frames: resumed }))).toMatchObject({ isCertain: true });
  });

  it('prove nothing where they represent its end alone: the sampler was starting', () => {
    expect(votesOf(samples(mine, 90, 100), { endMs: 200 })).toMatchObject({ winner: mine, isCertain: false });
  });

  it('prove nothing where they were late because the machine did not let the process run', () => {
    const late = [sample(mine, 90, { askedMs: 20 })];
    expect(countVotes(late, block).isCertain).toBe(true);
    expect(countVotes(late, block, 60)).toMatchObject({ winner: mine, isCertain: false });
    expect(countVotes(samples(mine, 20, 100), block, 60).isCertain).toBe(true);
  });

  it('may be older than a block that no request kept awake: it can have begun after them', () => {
    const early = samples(null, 120, 250);
    const votes = countVotes(early, { sinceMs: 100, startMs: 400, endMs: 600 });
    expect(votes.shown).toHaveLength(early.length);
    expect(votes.provenMs).toBeLessThanOrEqual(200);
  });

  it('say whether it waited in synchronous calls for files or processes', () => {
    const inExec = [
      frame('spawnSync', 'node:internal/child_process'),
      frame('execSync', 'node:child_process'),
      frame('handler'),
    ];
    const inHash = [frame('pbkdf2Sync', 'node:internal/crypto/pbkdf2'), frame('handler')];
    expect(votesOf(samples(mine, 20, 100, { frames: inExec })).isSyncIo).toBe(true);
    expect(votesOf(samples(mine, 20, 100, { frames: inHash })).isSyncIo).toBe(false);
    expect(votesOf(samples(mine, 20, 100)).isSyncIo).toBe(false);
    expect(votesOf([]).isSyncIo).toBe(false);
  });
});

describe('the time of a request inside a block', () => {
  it.each([
    [0, 0, 100],
    [30, 0, 70],
    [0, 60, 60],
    [30, 60, 30],
    [120, 0, 0],
  ])('from %i to %i is %i ms', (startedMs, endedMs, expected) => {
    expect(measureOverlap(block, Object.assign(request(endedMs), { startedMs }))).toBe(expected);
  });
});
