import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Allowed } from '../../packages/load/src/allowed.js';
import { Gate } from '../../packages/load/src/gate.js';
import { evenly, runOpenLoop } from '../../packages/load/src/open-loop.js';
import { durationMs, headersOf, percent, stepsOf } from '../../packages/load/src/quantity.js';
import { leftOut } from '../../packages/load/src/notes.js';
import { predictedRate, reasonsOf } from '../../packages/load/src/ramp/reasons.js';
import type { Snapshot } from '../../packages/load/src/ramp/server-view.js';
import { exitCodeOf, verdictLines, type RampResult, type StepResult } from '../../packages/load/src/ramp/verdict.js';
import { readTraffic } from '../../packages/load/src/traffic.js';
import { folder, recordingOf } from './cli.js';

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
  const result: RampResult = { steps, reasons: [], obstacle: null, predictedRate: null, ...rest };
  return [exitCodeOf(result), ...verdictLines(result)];
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
  it('says what held last, what failed and why, what was predicted, and whether it came back', () => {
    const failed = step(4, {
      outcome: 'fails',
      because: ['p95<100ms: 318 ms'],
      recoveredAfterMs: 1_400,
      memoryRatio: 1.03,
    });
    const reasons = reasonsOf(first, failing);
    expect(said([step(1), step(3), failed], { reasons, predictedRate: 172.4 })).toEqual([
      1,
      'ramp: holds 3X (150/s): p95 41 ms. 4X (200/s) fails p95<100ms: 318 ms.',
      'why: loop 0.97 busy; throttled 38 % of periods (limit 0.5 cores); GET /search takes 61 % of the loop (2.9 ms own CPU each); http slow.com takes 320 ms a call, 20 ms at first.',
      'predicted from 1X: 172/s. recovery: 1400 ms after 4X. memory within 3.0 % of what it was.',
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

  it('predicts from the first step what fills the loop or the CPU limit first, where it was long enough', () => {
    // The loop would last for 200/s; 0.2 of 0.5 cores last for 125/s.
    expect(predictedRate(50, 20_000, first)).toBeCloseTo(125);
    expect(predictedRate(50, 5_000, first)).toBeNull();
    expect(predictedRate(50, 20_000, { before: null, after: null })).toBeNull();
    expect(reasonsOf(first, { before: null, after: null })).toEqual([]);
    expect(reasonsOf(first, { before: first.before, after: snapshot(1, {}) })).toEqual([]);
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
    const request = {
      method: 'GET',
      path: '/',
      route: '/',
      headers: {},
      body: null,
      atMs: 0,
      answeredAtMs: null,
      session: null,
      status: 200,
    };
    const { outcomes, lateShare, voidBecause } = await runOpenLoop({
      offsetsMs: evenly(100, 300),
      requestAt(index) {
        const endsAt = performance.now() + (index === 5 ? 120 : 0);
        while (performance.now() < endsAt);
        return request;
      },
      send: () => Promise.resolve({ status: 200, failure: null, body: null, type: '', encoding: '', location: '' }),
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
    expect(() => durationMs('50000m', '--timeout')).toThrow('--timeout must be at most 2147483647ms (24 days)');
    for (const wrong of ['', '1,', '2,1', '1,1', '0', 'a']) expect(() => stepsOf(wrong)).toThrow('--steps');
    expect(() => headersOf(['secret'], '--header')).toThrow(/^--header must be 'name: value'\.$/);
    expect(() => headersOf(['a: b\r\nc: d'], '--header')).toThrow('--header');
    for (const value of ['Łukasz', 'a\u0000', 'a\u007f'])
      expect(() => headersOf([`x-name: ${value}`], '--header')).toThrow(
        /^--header: the value of x-name holds a character that no header may hold\. Encode it\.$/,
      );
    expect(() => headersOf(['Content-Length: 3'], '--header')).toThrow('Content-Length is made anew');
    expect(headersOf(['x-name: Zoë\t'], '--header')).toEqual({ 'x-name': 'Zoë\t' });
    expect(headersOf(['Authorization: Bearer x:y'], '--header')).toEqual({ authorization: 'Bearer x:y' });
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

describe('a recording', () => {
  const get = new Allowed([]);
  it('is read as it is or unpacked, in its order, without headers of the connection', async () => {
    const file = recordingOf([
      {
        url: '/b?q=[redacted]',
        t: 20,
        headers: { Host: 'evil', 'accept-language': 'de', 'content-length': '3', range: '[redacted]', a: 'b\r\nc: d' },
      },
      { url: '/a/é%20', t: 10, route: '/a/:name' },
    ]);
    const { requests } = await readTraffic(file, get);
    expect(requests.map(({ path, route }) => [path, route])).toEqual([
      ['/a/%C3%A9%20', '/a/:name'],
      ['/b?q=%5Bredacted%5D', '/b'],
    ]);
    expect(requests[1]!.headers).toEqual({ 'accept-language': 'de' });
  });

  it.each<[string, object, string]>([
    ['fields', { a: 'b c', d: '' }, 'a=b+c&d='],
    ['a field that came several times', { ids: ['1', '2'] }, 'ids=1&ids=2'],
    ['a list of one', { ids: ['1'] }, 'ids[]=1'],
    ['an object', { filter: { name: 'x', tags: ['a', 'b'] } }, 'filter[name]=x&filter[tags]=a&filter[tags]=b'],
    ['objects', { items: [{ id: '1', n: '2' }, { id: '3' }] }, 'items[0][id]=1&items[0][n]=2&items[1][id]=3'],
    ['lists of lists', { m: [['1', '2'], ['3']] }, 'm[0]=1&m[0]=2&m[1][]=3'],
    ['what no form holds', { n: null, t: 7 }, 'n=&t=7'],
  ])('holds forms that are sent as they came: %s', async (_what, body, sent) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
    const { requests } = await readTraffic(
      recordingOf([{ url: '/f', method: 'POST', headers, body }]),
      new Allowed(['POST /f']),
    );
    expect(decodeURIComponent(requests[0]!.body!.replaceAll('+', ' '))).toBe(sent.replaceAll('+', ' '));
  });

  it('of a process that was killed is read as far as it is whole', async () => {
    const whole = recordingOf(Array.from({ length: 300 }, (_, i) => ({ url: `/${Math.random()}`, t: i })));
    const packed = join(folder, 'killed.ndjson.gz.part');
    writeFileSync(packed, readFileSync(whole).subarray(0, readFileSync(whole).length * 0.7));
    const text = gunzipSync(readFileSync(whole)).toString();
    const plain = join(folder, 'killed.ndjson');
    writeFileSync(plain, text.slice(0, -20));
    const { requests, endsBroken } = await readTraffic(packed, get);
    expect(requests.length).toBeGreaterThan(50);
    expect(requests.length).toBeLessThan(300);
    expect(endsBroken).toBe(true);
    expect(await readTraffic(plain, get)).toMatchObject({ requests: { length: 299 }, endsBroken: true });
    expect(await readTraffic(whole, get)).toMatchObject({ requests: { length: 300 }, endsBroken: false });
    writeFileSync(plain, text.replace('"v":1', ''));
    await expect(readTraffic(plain, get)).rejects.toThrow('killed.ndjson:1 is no JSON');
  });

  it.each([
    ['another version', { v: 2, url: '/' }, 'has version 2, and this reads version 1'],
    ['no method', { url: '/', method: null }, 'has no method or no URL'],
    [
      'nothing else than what cannot be sent',
      { url: '/', method: 'GET\r\n' },
      'holds no request that may be sent. 1 requests are left out, since their method or path cannot be sent: GET�� /',
    ],
  ])('is refused with %s', async (_what, line, message) => {
    await expect(readTraffic(recordingOf([line]), get)).rejects.toThrow(message);
  });

  it('is read without the lines that cannot be sent, and says which', async () => {
    const odd = [
      { url: '*', method: 'OPTIONS' },
      { url: '?x=1' },
      { url: 'http://evil.com/' },
      { url: '/', method: '_OTHER' },
    ];
    const traffic = await readTraffic(recordingOf([...odd, { url: '/a' }]), get);
    expect(traffic.requests.map(({ path }) => path)).toEqual(['/a']);
    expect([...leftOut(traffic)]).toEqual([
      '4 requests are left out, since their method or path cannot be sent: OPTIONS *, GET , GET http://evil.com/',
    ]);
  });

  it('is read without requests whose URL was redacted or cut: they would be others', async () => {
    const cut = { url: '/search?…', redacted: ['url'] };
    const file = recordingOf([
      { url: '/files/[redacted]', route: '/files/:id', redacted: ['url'] },
      cut,
      { ...cut, method: 'POST' },
      { url: '/a', redacted: ['headers.cookie'] },
    ]);
    const traffic = await readTraffic(file, get);
    expect(traffic.requests.map(({ path }) => path)).toEqual(['/a']);
    expect([...leftOut(traffic)]).toEqual([
      '2 requests are left out, since their URL is not in the recording as it was: it held a secret, or was too long: GET /files/:id, GET /search',
      expect.stringMatching(/^1 requests are left out, since they may change data\./),
    ]);
    await expect(readTraffic(recordingOf([cut]), get)).rejects.toThrow(
      /holds no request that may be sent\. 1 requests are left out, since their URL is not in the recording/,
    );
  });

  it('is refused when it is another file', async () => {
    await expect(readTraffic('package.json', get)).rejects.toThrow(
      'package.json:1 is no JSON. Is it a recording of perf.recording?',
    );
    await expect(readTraffic('nowhere', get)).rejects.toThrow('There is no file nowhere.');
  });
});
