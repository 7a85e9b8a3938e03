/* eslint-disable no-extend-native -- to see that the probe does not call what others have put there */
/* eslint-disable typescript/unbound-method -- compared and put back, never called */
import { createContext, runInContext, runInThisContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RequestState, type RequestOwner } from '../../../../src/core/request-state.js';
import { Route } from '../../../../src/core/route.js';
import type { Frame } from '../../../../src/event-loop/frame.js';
import { captureFrames, Probe } from '../../../../src/event-loop/interrupt/probe.js';
import { Naming } from '../../../../src/event-loop/interrupt/naming.js';

const owner: RequestOwner = { attached: null, nextId: () => 'id', findRoute: () => null };
const NAME = 'nestjs-perf:probe:test';

describe('a look at the stack', () => {
  const words = new Int32Array(8);
  const state = new RequestState(null, null, 0, owner);
  const naming = new Naming('perf:', words);
  let nowMs = 0;
  let probe: Probe;
  beforeEach(() => {
    words[0] = 7;
    nowMs = 100;
    naming.current = state;
    probe = new Probe(NAME, words, naming, { ...owner, contextEnabled: false }, () => nowMs);
  });
  afterEach(() => probe.close());
  const look = (seq: number, at = 99.5): Record<string, unknown> => {
    const message = { seq, at, ok: false };
    (globalThis as unknown as Record<string, ((given: object) => void) | undefined>)[NAME]?.(message);
    return message;
  };

  it('is kept for the block that it was asked for', () => {
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

  it('is forgotten, with its request, when the loop has turned without a block', () => {
    look(7);
    probe.turned();
    expect(probe.samplesOf(7)).toEqual([]);
  });

  it('of an earlier block is not taken for one of this', () => {
    look(7);
    words[0] = 8;
    nowMs = 300;
    look(8);
    expect(probe.samplesOf(7)).toEqual([]);
    expect(probe.samplesOf(8)).toHaveLength(1);
  });

  it('tells the watchdog whose code it saw, in plain values', () => {
    const handler = { className: 'A', methodName: 'b', name: 'A.b', skipped: false, slowMs: null };
    state.route = new Route('GET', '/a/:id', handler, () => {});
    expect(look(7)).toMatchObject({ route: '/a/:id', handler: 'A.b' });
    state.route = null;
  });

  it('that comes late hears whose function settles next', async () => {
    look(7, 99);
    await naming.runHandler(state, async () => null);
    look(7, 40);
    await naming.runHandler(state, async () => null);
    expect(probe.samplesOf(7).map(({ settledNext }) => settledNext)).toEqual([null, state]);
  });

  it('is found from every context, as a hidden property of the main one’s global object', () => {
    expect(Object.keys(globalThis)).not.toContain(NAME);
    const suite = createContext({ runInThisContext });
    expect(runInContext(`runInThisContext('globalThis')['${NAME}']`, suite)).toBeTypeOf('function');
  });

  it('calls nothing that others have replaced since', () => {
    const { get } = Map.prototype;
    const { push } = Array.prototype;
    const { apply } = Reflect;
    const { now } = performance;
    const { captureStackTrace } = Error;
    const replaced = (): never => {
      throw new Error('replaced');
    };
    Map.prototype.get = Reflect.apply = performance.now = Error.captureStackTrace = replaced;
    Array.prototype.push = replaced;
    const seen = look(7);
    Map.prototype.get = get;
    Array.prototype.push = push;
    Reflect.apply = apply;
    performance.now = now;
    Error.captureStackTrace = captureStackTrace;
    expect(seen).toMatchObject({ ok: true });
  });

  it('that finds no room on the stack is lost, and nothing else', () => {
    const now = (): never => {
      throw new RangeError('Maximum call stack size exceeded');
    };
    probe = new Probe(NAME, words, naming, { ...owner, contextEnabled: false }, now);
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
    expect(NAME in globalThis).toBe(false);
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

  it('of code that a bundler runs by `eval()` have the file that its `sourceURL` names', () => {
    const framesOf = (url: string) => {
      const source = `(function render(look) {\n  return look();\n})\n//# sourceURL=${url}`;
      const run = runInThisContext(`eval(${JSON.stringify(source)})`) as (look: () => Frame[]) => Frame[];
      return run(captureFrames).find(({ name }) => name === 'render');
    };
    const url = 'webpack-internal:///./src/reports.ts';
    expect(framesOf(url)).toMatchObject({ file: url, line: 2 });
    expect(framesOf('lodash.templateSources[0]')).toMatchObject({ file: null });
  });

  it('are none while a stack is being formatted: V8 does not do that twice at a time', () => {
    const prepare = Error.prepareStackTrace;
    let frames: unknown;
    Error.prepareStackTrace = () => (frames = captureFrames());
    void new Error('formatted').stack;
    Error.prepareStackTrace = prepare;
    expect(frames).toEqual([]);
  });
});
