/* eslint-disable typescript/unbound-method -- compared and put back, never called */
import { channel } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RequestState, type RequestOwner } from '../../../../src/core/request-state.js';
import { Route } from '../../../../src/core/route.js';
import { captureFrames, Probe, type Identity } from '../../../../src/event-loop/interrupt/probe.js';

const owner: RequestOwner = { gates: null, deferrer: null, nextId: () => 'id', findRoute: () => null };
const NAME = 'nestjs-perf:probe:test';

describe('a look at the stack', () => {
  const words = new Int32Array(8);
  const state = new RequestState(null, null, 0, owner);
  let identity: Identity & { fails?: boolean };
  let nowMs = 0;
  let probe: Probe;
  beforeEach(() => {
    words[0] = 7;
    nowMs = 100;
    identity = {
      source: 'slot',
      show() {},
      of() {
        if (this.fails === true) throw new RangeError('Maximum call stack size exceeded');
        return state;
      },
    };
    probe = new Probe(NAME, words, identity, () => nowMs);
  });
  afterEach(() => probe.close());
  const look = (seq: number, at = 99.5): Record<string, unknown> => {
    const message = { seq, at, ok: false };
    channel(NAME).publish(message);
    return message;
  };

  it('is kept for the standstill that it was asked for', () => {
    expect(look(7)).toMatchObject({ ok: true });
    nowMs = 110;
    look(7);
    expect(probe.samplesOf(7).map(({ servedMs }) => servedMs)).toEqual([100, 110]);
    expect(probe.samplesOf(7)).toEqual([]);
  });

  it('is dropped when the loop has turned since it was asked for', () => {
    expect(look(6)).toMatchObject({ ok: false });
    expect(probe.samplesOf(6)).toEqual([]);
    expect(probe.samplesOf(7)).toEqual([]);
  });

  it('of an earlier standstill is not taken for one of this', () => {
    look(7);
    words[0] = 8;
    nowMs = 300;
    look(8);
    expect(probe.samplesOf(7)).toEqual([]);
    expect(probe.samplesOf(8)).toHaveLength(1);
  });

  it('tells the watchdog whose code it saw, in plain values', () => {
    const handler = { className: 'A', methodName: 'b', name: 'A.b', skipped: false };
    state.route = new Route('GET', '/a/:id', handler, () => {});
    expect(look(7)).toMatchObject({ route: '/a/:id', handler: 'A.b' });
    state.route = null;
  });

  it('that comes late is told at once', () => {
    const late: number[] = [];
    probe.onLate = ({ requestedMs }) => late.push(requestedMs);
    look(7, 99);
    look(7, 40);
    expect(late).toEqual([40]);
  });

  it('that finds no room on the stack is lost, and nothing else', () => {
    identity.fails = true;
    expect(look(7)).toMatchObject({ ok: false });
    expect(probe.failed).toBe(1);
  });

  it('keeps no more than it needs', () => {
    for (let i = 0; i < 1_000; i++) look(7);
    expect(probe.samplesOf(7).length).toBeLessThanOrEqual(256);
  });

  it('is over when it is closed', () => {
    probe.close();
    expect(look(7)).toMatchObject({ ok: false });
    expect(channel(NAME).hasSubscribers).toBe(false);
  });
});

describe('frames', () => {
  it('leave the application’s way of formatting stacks alone, and do not call it', () => {
    const [limit, prepare] = [Error.stackTraceLimit, Error.prepareStackTrace];
    let called = 0;
    const own = (): string => `formatted ${(called += 1)}`;
    [Error.stackTraceLimit, Error.prepareStackTrace] = [3, own];
    const frames = captureFrames();
    const after = [Error.stackTraceLimit, Error.prepareStackTrace];
    [Error.stackTraceLimit, Error.prepareStackTrace] = [limit, prepare];
    expect(after).toEqual([3, own]);
    expect(called).toBe(0);
    expect(frames.length).toBeGreaterThan(3);
    expect(frames[0]!.file).toContain('probe.test.ts');
  });
});
