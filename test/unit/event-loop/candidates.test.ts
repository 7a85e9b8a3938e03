import { describe, expect, it } from 'vitest';
import { RequestState } from '../../../src/core/request-state.js';
import { likeliest, phaseAt, sharesWork, suspectAt, type Candidate } from '../../../src/event-loop/candidates.js';
import { beginProgress, type Phase } from '../../../src/event-loop/interrupt/naming.js';
import type { Look } from '../../../src/event-loop/frame.js';

const one = (state: string, phase: Phase, enteredBy = 1, inBlock = false): Candidate<string> => ({
  state,
  phase,
  enteredBy,
  inBlock,
});
/** A dozen that wait for timers in async handlers. */
const innocents = Array.from({ length: 12 }, (_, i) => one(`innocent ${i}`, 'handler', 10 + i, i === 11));

describe('who may have run where the stack shows no request', () => {
  it.each<Phase>(['before', 'route', 'open', 'after'])('is the only one in phase %s', (phase) => {
    expect(likeliest([...innocents, one('a', phase), one('sse', 'done')], false)).toBe('a');
  });

  it('is, of several, the one that came there last, if that was in the block', () => {
    const earlier = [one('x', 'open', 3), one('y', 'before', 0)];
    expect(likeliest([...innocents, ...earlier, one('a', 'after', 40, true)], false)).toBe('a');
    expect(likeliest([...innocents, ...earlier, one('a', 'after', 40, false)], false)).toBeNull();
  });

  it('is one that waits by name only if it is alone: its callbacks are not shown', () => {
    expect(likeliest([one('a', 'handler'), one('b', 'done')], false)).toBe('a');
    expect(likeliest(innocents, false)).toBeNull();
  });

  it('is one that is done only if nobody else is there', () => {
    expect(likeliest([one('a', 'done')], false)).toBe('a');
    expect(likeliest([one('a', 'done'), one('b', 'done')], false)).toBeNull();
    expect(likeliest([], false)).toBeNull();
  });

  it('is in the event of a request only the one that has just begun', () => {
    const begun = one('a', 'before', 40, true);
    expect(likeliest([...innocents, one('x', 'open', 50, true), begun], true)).toBe('a');
    expect(likeliest([...innocents, one('x', 'open')], true)).toBeNull();
  });
});

describe('the requests in flight at a look', () => {
  const owner = { attached: null, nextId: () => 'id', findRoute: () => null };
  const request = (startedMs: number): RequestState => new RequestState(null, null, startedMs, owner);
  const look: Look<RequestState> = {
    requestedMs: 125,
    servedMs: 126,
    state: null,
    source: null,
    unknown: 'unseen',
    frames: [],
    cut: false,
    changes: 7,
    changesBefore: 5,
    settledNext: null,
  };

  it('are asked for their phases at the look, not now', () => {
    const waits = request(10);
    Object.assign(beginProgress(waits), { route: 1, handler: 2 });
    const culprit = request(20);
    Object.assign(beginProgress(culprit), { route: 3, handler: 4, after: 6, done: 9 });
    expect(suspectAt(look, [waits, culprit], 100, null)).toBe(culprit);
    expect(phaseAt(beginProgress(culprit), 7)).toEqual({ phase: 'after', enteredBy: 6 });
    expect(phaseAt(beginProgress(culprit), 9).phase).toBe('done');
    expect(phaseAt(null, 9).phase).toBe('before');
  });

  it('are not those that came later or had ended', () => {
    const [ended, later] = [request(10), request(130)];
    ended.endedMs = 120;
    expect(suspectAt(look, [ended, later], 100, null)).toBeNull();
  });

  it('are ordered by their start where no route function tells: a GraphQL server’s', () => {
    const [old, fresh] = [request(10), request(100)];
    expect(suspectAt(look, [old, fresh], 100, null)).toBe(fresh);
    expect(suspectAt(look, [old, request(50)], 100, null)).toBeNull();
  });

  it('are only those before their route function where the store knows the others', () => {
    const background = { ...look, unknown: 'background' as const };
    const waits = request(10);
    Object.assign(beginProgress(waits), { route: 1, handler: 2 });
    expect(suspectAt(background, [waits], 100, null)).toBeNull();
    const early = request(20);
    expect(suspectAt(background, [waits, early], 100, null)).toBe(early);
  });

  it('may share work with one that has not come to its handler either', () => {
    const [own, other, ended] = [request(10), request(20), request(20)];
    const mine = { ...look, state: own, source: 'store' as const };
    expect(sharesWork(mine, [own, other])).toBe(true);
    Object.assign(beginProgress(other), { route: 1 });
    expect(sharesWork(mine, [own, other])).toBe(true);
    expect(sharesWork({ ...mine, source: 'aside' }, [own, other])).toBe(false);
    Object.assign(beginProgress(other), { route: 1, handler: 2 });
    ended.endedMs = 100;
    expect(sharesWork(mine, [own, other, ended, request(130)])).toBe(false);
  });

  it('of several that are alike, the first to show that its code has run', () => {
    const [one, other] = [request(50), request(50)];
    expect(suspectAt(look, [one, other], 100, null)).toBeNull();
    expect(suspectAt(look, [one, other], 100, other)).toBe(other);
    expect(suspectAt(look, [one], 100, other)).toBe(one);
  });
});
