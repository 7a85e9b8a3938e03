/* eslint-disable no-extend-native -- to see that the probe does not call what others have put there */
/* eslint-disable typescript/unbound-method -- compared and put back, never called */
import { createContext, runInContext, runInThisContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requestContext, RequestState, type RequestOwner } from '../../../../src/request/request-state.js';
import { Route } from '../../../../src/request/routes.js';
import { UNITS_PER_MS, WORD, WORDS } from '../../../../src/event-loop/beat.js';
import { captureFrames, Probe, type CapturedStack } from '../../../../src/event-loop/interrupt/probe.js';

const owner: RequestOwner = {
  deferrer: null,
  experiments: null,
  sharedAnswers: null,
  nextId: () => 'id',
  findRoute: () => null,
};
const findState = (application = owner): RequestState => new RequestState(null, null, 0, application);
const NAME = 'nestjs-perf:probe:test';

describe('a stack sample', () => {
  const words = new Int32Array(WORDS);
  const state = findState();
  let nowMs = 0;
  let probe: Probe;
  beforeEach(() => {
    words.fill(0);
    nowMs = 100;
    probe = new Probe(NAME, words, owner, () => nowMs);
  });
  afterEach(() => probe.close());
  const sample = (askedMs = 99.5): unknown => {
    words[WORD.askedAt] = askedMs * UNITS_PER_MS;
    return (globalThis as unknown as Record<string, (() => unknown) | undefined>)[NAME]?.();
  };

  it('has the time at which it was asked for, and at which it was taken', () => {
    expect(sample(40)).toBe(false);
    nowMs = 110;
    sample(109.5);
    expect(probe.takeAll().map(({ askedMs, atMs }) => [askedMs, atMs])).toEqual([
      [40, 100],
      [109.5, 110],
    ]);
    expect(probe.takeAll()).toEqual([]);
  });

  it('represents the moments of the sampling rate that have passed since the one before', () => {
    words[WORD.due] = 1;
    sample();
    sample();
    words[WORD.due] = 4;
    sample();
    expect(probe.takeAll().map(({ due }) => due)).toEqual([1, 0, 3]);
  });

  it('has the request of the async context; a scope inside a request counts for the request', () => {
    const resolver = findState();
    resolver.within = state;
    for (const stored of [state, resolver]) requestContext.run(stored, sample);
    expect(probe.takeAll().map((one) => one.state)).toEqual([state, state]);
  });

  it('has no request outside of one, and none of another application', () => {
    requestContext.exit(sample);
    requestContext.run(findState({ ...owner }), sample);
    expect(probe.takeAll().map((one) => one.state)).toEqual([null, null]);
  });

  it('describes itself in plain values where the thread wants that', () => {
    const handler = { name: 'A.b', skipped: false, slowMs: null };
    state.route = new Route('GET', '/a/:id', handler, () => {});
    words[WORD.described] = 1;
    const description = requestContext.run(state, sample) as object;
    expect(description).toMatchObject({ method: 'GET', route: '/a/:id', handler: 'A.b', idle: false });
    expect(structuredClone(description)).toEqual(description);
    state.route = null;
  });

  it('is found from every context, as a hidden property of the main one’s global object', () => {
    expect(Object.keys(globalThis)).not.toContain(NAME);
    const suite = createContext({ runInThisContext });
    expect(runInContext(`runInThisContext('globalThis')['${NAME}']`, suite)).toBeTypeOf('function');
  });

  it('calls nothing that others have replaced since', () => {
    const { push } = Array.prototype;
    const { apply } = Reflect;
    const { now } = performance;
    const { captureStackTrace } = Error;
    const { getStore } = requestContext;
    const replaced = (): never => {
      throw new Error('replaced');
    };
    Reflect.apply = performance.now = Error.captureStackTrace = replaced;
    requestContext.getStore = Array.prototype.push = replaced;
    const seen = sample();
    Array.prototype.push = push;
    Reflect.apply = apply;
    performance.now = now;
    Error.captureStackTrace = captureStackTrace;
    requestContext.getStore = getStore;
    expect(seen).toBe(false);
  });

  it('that finds no room on the stack is lost, and nothing else', () => {
    const now = (): never => {
      throw new RangeError('Maximum call stack size exceeded');
    };
    probe = new Probe(NAME, words, owner, now);
    expect(sample()).toBeNull();
    expect(probe.takeAll()).toEqual([]);
  });

  it('is one of a bounded number', () => {
    for (let i = 0; i < 2_000; i++) sample();
    expect(probe.takeAll().length).toBe(1_024);
  });

  it('is not taken when the probe is closed', () => {
    probe.close();
    expect(sample()).toBeUndefined();
    expect(NAME in globalThis).toBe(false);
  });
});

describe('frames', () => {
  it('leave the application’s way of formatting stacks alone, and do not call it', () => {
    const [limit, prepare] = [Error.stackTraceLimit, Error.prepareStackTrace];
    let called = 0;
    const own = (): string => `formatted ${(called += 1)}`;
    [Error.stackTraceLimit, Error.prepareStackTrace] = [3, own];
    const { frames } = captureFrames();
    const after = [Error.stackTraceLimit, Error.prepareStackTrace];
    [Error.stackTraceLimit, Error.prepareStackTrace] = [limit, prepare];
    expect(after).toEqual([3, own]);
    expect(called).toBe(0);
    expect(frames.length).toBeGreaterThan(3);
    expect(frames[0]!.file).toContain('probe.test.ts');
  });

  it('are those of both ends of a deep stack: the code that runs, and its caller', () => {
    const walk = (levels: number): CapturedStack => (levels === 0 ? captureFrames() : walk(levels - 1));
    const renderReport = (): CapturedStack => walk(1_000);
    const { frames, cut } = renderReport();
    expect(cut).toBe(true);
    expect(frames.length).toBeLessThanOrEqual(180);
    expect(frames.map(({ name }) => name)).toContain('renderReport');
    expect(captureFrames().cut).toBe(false);
  });

  it('have the class of a method, behind an `await` too', async () => {
    class Reports {
      async render(): Promise<CapturedStack> {
        await Promise.resolve();
        return captureFrames();
      }
      async get(): Promise<CapturedStack> {
        return await this.render();
      }
    }
    const { frames } = await new Reports().get();
    const methods = frames.filter(({ typeName }) => typeName === 'Reports');
    expect(methods.map(({ name, async }) => [name, async])).toEqual([
      ['render', false],
      ['get', true],
    ]);
  });

  it('are none while a stack is being formatted: V8 does not do that twice at a time', () => {
    const prepare = Error.prepareStackTrace;
    let captured: unknown;
    Error.prepareStackTrace = () => (captured = captureFrames());
    void new Error('formatted').stack;
    Error.prepareStackTrace = prepare;
    expect(captured).toEqual({ frames: [], cut: true });
  });
});
