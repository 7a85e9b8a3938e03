import { describe, expect, it } from 'vitest';
import { Allowed } from '../../../packages/load/src/allowed.js';
import { Gate } from '../../../packages/load/src/gate.js';
import { runOpenLoop } from '../../../packages/load/src/open-loop.js';
import { evenly } from '../../../packages/load/src/pacer.js';
import { durationMs, parseHeaders, percent, parseSteps } from '../../../packages/load/src/quantity.js';
import { findReasons } from '../../../packages/load/src/ramp/reasons.js';
import type { Snapshot } from '../../../packages/load/src/ramp/server-view.js';
import {
  chooseExitCode,
  verdictLines,
  type RampResult,
  type StepResult,
} from '../../../packages/load/src/ramp/verdict.js';
import { makeGet } from '../../../packages/load/src/traffic.js';

const latency = (p95: number) => ({
  mean: p95,
  p50: p95 / 2,
  p90: p95,
  p95,
  p99: p95 * 2,
  'p99.9': p95 * 3,
  max: p95 * 4,
});
const step = (factor: number, given: Partial<StepResult> = {}): StepResult => ({
  factor,
  ratePerSecond: 50 * factor,
  requests: 100,
  durationMs: latency(41),
  errorShare: 0,
  failures: {},
  otherStatus: {},
  outcome: 'holds',
  because: [],
  lateShare: 0,
  ownCpu: 0.1,
  recoveredAfterMs: 0,
  memoryRatio: null,
  ...given,
});
const said = (steps: StepResult[], rest: Partial<RampResult> = {}) => {
  const result: RampResult = { steps, reasons: [], obstacle: null, ...rest };
  return [chooseExitCode(result), ...verdictLines(result)];
};

const snapshot = (at: number, given: object): Snapshot => ({ at, ...given });
const resources = (at: number, usageSeconds: number, throttledPeriods: number) => ({
  at,
  limits: { cpuCores: 0.5 },
  cpu: { usageSeconds, periods: at / 100, throttledPeriods },
  process: { rssBytes: 1e8 },
});
const first = {
  before: snapshot(0, { eventLoop: { utilization: 0 }, resources: resources(0, 0, 0) }),
  after: snapshot(20_000, {
    eventLoop: { utilization: 0.25 },
    resources: resources(20_000, 4, 0),
    upstream: [{ target: 'http slow.com', calls: 100, inFlight: 0, durationMs: { mean: 20 } }],
  }),
};
const failing = {
  before: first.after,
  after: snapshot(40_000, {
    eventLoop: { utilization: 0.97 },
    resources: resources(40_000, 14, 76),
    upstream: [{ target: 'http slow.com', calls: 200, inFlight: 9, durationMs: { mean: 170 } }],
    routes: [
      { method: 'GET', route: '/fast', time: { ownCpuMs: { mean: 0.1 }, loopShare: 0.2 } },
      { method: 'GET', route: '/search', time: { ownCpuMs: { mean: 2.9 }, loopShare: 0.61 } },
    ],
  }),
};

describe('the verdict of a ramp', () => {
  it('says what held last, what failed and why, and whether it came back', () => {
    const failed = step(4, {
      outcome: 'fails',
      because: ['p95<100ms: 318 ms'],
      recoveredAfterMs: 1_400,
      memoryRatio: 1.03,
    });
    const reasons = findReasons(first, failing);
    expect(said([step(1), step(3), failed], { reasons })).toEqual([
      1,
      'ramp: holds 3X (150/s): p95 41 ms. 4X (200/s) fails p95<100ms: 318 ms.',
      'why: loop 0.97 busy; throttled 38 % of periods (limit 0.5 cores); GET /search takes 61 % of the loop (2.9 ms own CPU each); http slow.com takes 320 ms a call, 20 ms at first.',
      'recovery: 1400 ms after 4X. memory within 3.0 % of what it was.',
    ]);
  });

  it('ends with 0, 1, 2 or 3', () => {
    expect(said([step(1), step(2)])).toEqual([0, 'ramp: holds 2X (100/s): p95 41 ms.', 'recovery: 0.0 ms after 2X.']);
    expect(said([step(1, { outcome: 'fails', because: ['errors<1%: 4.0 %'], failures: { 500: 4 } })])).toEqual([
      1,
      'ramp: holds nothing. 1X (50/s) fails errors<1%: 4.0 %.',
      'why: errors: 4 × 500.',
      'recovery: 0.0 ms after 1X.',
    ]);
    expect(said([step(1), step(2, { recoveredAfterMs: null })])).toEqual([
      2,
      'ramp: holds 1X (50/s): p95 41 ms.',
      'It does not recover within the rest after 2X.',
    ]);
    const isVoid = step(2, { outcome: 'void', because: ['the generator took 97 % of its core'] });
    expect(said([step(1), isVoid])[0]).toBe(3);
    expect(said([step(1), isVoid])[1]).toBe(
      'ramp: holds 1X (50/s): p95 41 ms. 2X (100/s) is void: the generator took 97 % of its core.',
    );
  });

  it('has no reasons where the server tells nothing', () => {
    expect(findReasons(first, { before: null, after: null })).toEqual([]);
    expect(findReasons(first, { before: first.before, after: snapshot(1, {}) })).toEqual([]);
  });

  it('has a gate that holds when all of its conditions do', () => {
    const gate = new Gate('p95 < 100ms, errors<0.1%');
    expect(gate.failures({ durationMs: latency(99), errorShare: 0 })).toEqual([]);
    expect(gate.failures({ durationMs: latency(100), errorShare: 0.5 })).toEqual([
      'p95<100ms: 100 ms',
      'errors<0.1%: 50 %',
    ]);
    expect(gate.failures({ durationMs: latency(NaN), errorShare: 0 })).toEqual(['p95<100ms: no answer']);
    expect(new Gate('p99<1.5s p50<20ms').slowestMs).toBe(1_500);
    expect(new Gate('errors<=0%').failures({ durationMs: latency(1), errorShare: 0 })).toEqual([]);
    expect(new Gate('p95 <= 100ms').failures({ durationMs: latency(101), errorShare: 0 })).toEqual([
      'p95<=100ms: 101 ms',
    ]);
    // A share that fails its gate does not look like none.
    expect(new Gate('errors<0.01%').failures({ durationMs: latency(1), errorShare: 0.0004 })).toEqual([
      'errors<0.01%: 0.04 %',
    ]);
    expect([0, 0.000002, 0.0123, 0.04, 0.1, 1].map(percent)).toEqual([
      '0 %',
      '0.0002 %',
      '1.2 %',
      '4.0 %',
      '10 %',
      '100 %',
    ]);
    for (const wrong of ['', 'p95', 'p95>1ms', 'p95<100', 'errors<3ms', 'p97<1s', 'errors<0.1% x'])
      expect(() => new Gate(wrong)).toThrow(/--gate/);
  });
});

describe('a run', () => {
  it('counts from the intended start when it is late itself, and says that it is void', async () => {
    const request = makeGet('/');
    const { outcomes, lateShare, voidBecause } = await runOpenLoop({
      offsetsMs: evenly(100, 300),
      requestAt(index) {
        const endsAt = performance.now() + (index === 5 ? 120 : 0);
        while (performance.now() < endsAt);
        return request;
      },
      send: () => Promise.resolve({ status: 200, failure: null, body: null, type: '', location: '' }),
    });
    const { requests, durationMs } = outcomes.figures();
    expect(requests).toBe(30);
    // Twelve were to start meanwhile, the first of them 110 ms before it could.
    expect(durationMs.max).toBeGreaterThan(100);
    expect(durationMs.p90).toBeGreaterThan(60);
    expect(lateShare).toBeGreaterThan(0.3);
    expect(voidBecause).toMatch(/of starts were more than 5 ms late/);
  });
});

describe('arguments', () => {
  it('are refused with what they should be', () => {
    for (const wrong of ['60', '-1s', 's', '1h'])
      expect(() => durationMs(wrong, '--hold')).toThrow('--hold must be a duration');
    expect(durationMs('1.5m', '--hold')).toBe(90_000);
    // Timers take whole milliseconds: 1.005 times 1,000 is none.
    expect(['1.005s', '2.5ms', '0.1ms'].map((text) => durationMs(text, '--timeout'))).toEqual([1_005, 3, 0]);
    for (const wrong of ['', '1,', '2,1', '1,1', '0', 'a']) expect(() => parseSteps(wrong)).toThrow('--steps');
    expect(() => parseHeaders(['secret'], '--header')).toThrow(/^--header must be 'name: value'\.$/);
    expect(() => parseHeaders(['a: b\r\nc: d'], '--header')).toThrow('--header');
    for (const value of ['Łukasz', 'a\u0000', 'a\u007f'])
      expect(() => parseHeaders([`x-name: ${value}`], '--header')).toThrow(
        /^--header: the value of x-name holds a character that no header may hold\. Encode it\.$/,
      );
    expect(() => parseHeaders(['Content-Length: 3'], '--header')).toThrow('Content-Length is made anew');
    expect(parseHeaders(['x-name: Zoë\t'], '--header')).toEqual({ 'x-name': 'Zoë\t' });
    expect(parseHeaders(['Authorization: Bearer x:y'], '--header')).toEqual({ authorization: 'Bearer x:y' });
  });

  it('allow a method and a path, or a route', () => {
    const allowed = new Allowed(['POST /search', 'PUT /users/:id']);
    const has = (method: string, path: string, route = path): boolean => allowed.has({ method, path, route });
    expect([has('GET', '/x'), has('HEAD', '/x'), has('POST', '/search?q=1'), has('PUT', '/users/7')]).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect([
      has('POST', '/search/x'),
      has('PUT', '/users/'),
      has('PUT', '/users/7/x'),
      has('DELETE', '/search'),
    ]).toEqual([false, false, false, false]);
    for (const wrong of ['/search', 'POST', 'post /x']) expect(() => new Allowed([wrong])).toThrow('--allow must be');
  });
});
