import { describe, expect, it } from 'vitest';
import { inOneTurn } from '../../../src/core/turns.js';
import { encodeWindow, EncodedWindow } from '../../../src/history/rows/encoded-window.js';
import { RouteSums, SiteWindow } from '../../../src/history/rows/window.js';
import { VerdictEngine } from '../../../src/history/verdicts/engine.js';
import { JudgedWindow, WindowSums } from '../../../src/history/verdicts/judged-window.js';
import { WINDOW_MS } from '../../../src/history/rows/tiers.js';
import { sumsOf, windowOf } from '../../fixtures/history.js';

const START = Date.UTC(2026, 0, 5);

/** What the first verdict blames when background work begins after `calm` windows; `reports`: how many are asked for in a window. */
function blamed(calm: number, reports: (window: number) => number): string {
  const engine = new VerdictEngine(() => []);
  for (let index = 0; index < calm + 4; index++) {
    const window = new JudgedWindow(START + index * WINDOW_MS);
    const isBusy = index >= calm;
    window.process.observedMs = WINDOW_MS;
    window.process.busyMs = (isBusy ? 0.6 : 0.2) * WINDOW_MS;
    window.routes.set('GET /feed', sumsOf(300, 20 + (index % 3), isBusy ? 200 : 50));
    if (reports(index) > 0) window.routes.set('GET /report', sumsOf(reports(index), 1_000, 50));
    const [verdict] = inOneTurn(engine.judge(window));
    if (verdict !== undefined) return `${verdict.because[0]!.part}: ${verdict.because[0]!.name}`;
  }
  return 'nothing';
}

describe('what a verdict says of the event loop', () => {
  it('is not a heavy route that is asked for now and then as always', () => {
    expect(blamed(60, () => 5)).toBe('loop-wait: background work');
  });

  it('is not a heavy route that nobody has asked for in hours', () => {
    expect(blamed(100, (window) => (window >= 20 && window < 26 ? 60 : 0))).toBe('loop-wait: background work');
  });

  it('is the heavy route that is asked for more', () => {
    expect(blamed(60, (window) => (window < 60 ? 5 : 100))).toBe('loop-wait: more requests of GET /report');
  });
});

/** What is told of `GET /orders`, a calm route for six hours, beside four that stay calm. */
function toldOf(hours: number, of: (window: number) => { ms: number; errors: number } | null): string[] {
  const engine = new VerdictEngine(() => []);
  const told: string[] = [];
  for (let index = -72; index < hours * 12; index++) {
    const window = new JudgedWindow(START + index * WINDOW_MS);
    window.process.observedMs = WINDOW_MS;
    window.process.busyMs = 0.2 * WINDOW_MS;
    const figures = index < 0 ? { ms: 100, errors: 0 } : of(index);
    if (figures !== null) {
      const orders = sumsOf(300, figures.ms + (Math.abs(index) % 3), 0);
      window.routes.set('GET /orders', Object.assign(orders, { errors: 300 * figures.errors }));
    }
    for (let i = 0; i < 4; i++) window.routes.set(`GET /calm/${i}`, sumsOf(300, 50 + ((Math.abs(index) + i) % 3), 0));
    for (const { kind, metric, state, text } of inOneTurn(engine.judge(window))) {
      const ending = state === 'active' ? state : /, ([^,(]*) \(/.exec(text)![1];
      told.push(`${kind} ${metric} ${ending}`);
    }
  }
  return told;
}

describe('what a verdict does not hide', () => {
  it('is the outage of a route that got faster, or slower, an hour before', () => {
    const errors = (window: number): number => (window >= 12 ? 0.6 : 0);
    expect(toldOf(4, (window) => ({ ms: 60, errors: errors(window) }))).toEqual([
      'better latency active',
      'worse errors active',
    ]);
    expect(toldOf(4, (window) => ({ ms: 200, errors: errors(window) }))).toEqual([
      'worse latency active',
      'worse errors active',
    ]);
  });

  it('is what gets far worse than was told, until it is as it was told', () => {
    const levels = (window: number): number => [0.05, 0.95, 0.05, 0][Math.floor(window / 24)]!;
    expect(toldOf(8, (window) => ({ ms: 100, errors: levels(window) }))).toEqual([
      'worse errors active',
      'worse errors active',
      'worse errors back to what it was',
      'worse errors back to what it was',
    ]);
    expect(toldOf(4, (window) => ({ ms: window < 24 ? 180 : 5_000, errors: 0 }))).toEqual([
      'worse latency active',
      'worse latency active',
    ]);
  });

  it('is not what was half calm in its first window, nor what gets somewhat worse', () => {
    expect(toldOf(4, (window) => ({ ms: window < 1 ? 200 : 2_000, errors: 0 }))).toEqual(['worse latency active']);
    expect(toldOf(4, (window) => ({ ms: window < 24 ? 200 : 280, errors: 0 }))).toEqual(['worse latency active']);
  });

  it('is what is slow after it had got faster, and nothing is said to be as it was', () => {
    expect(toldOf(4, (window) => ({ ms: window < 24 ? 60 : 2_000, errors: 0 }))).toEqual([
      'better latency active',
      'better latency now as far the other way',
      'worse latency active',
    ]);
  });

  it('is not for ever a route that is gone', () => {
    expect(toldOf(48, (window) => (window < 12 ? { ms: 1_000, errors: 0 } : null))).toEqual([
      'worse latency active',
      'worse latency hardly asked for in the last 24 hours',
    ]);
  });

  it('is told once where one change shows in several figures', () => {
    expect(toldOf(4, () => ({ ms: 2_000, errors: 0.6 }))).toEqual(['worse errors active']);
  });
});

describe('whose doing a change is', () => {
  /** What processes of a pod do: `ms` a request, 0 without any; `share`: of a window, where the pod ends or begins in it. */
  interface Pod {
    readonly ms: number;
    readonly share: number;
    readonly processes?: number;
  }

  /** What is told when the pods of each window become others. */
  const toldOfPods = (podsAt: (index: number) => Readonly<Record<string, Pod>>): string[] => {
    const engine = new VerdictEngine(() => []);
    const told: string[] = [];
    for (let index = -72; index < 6; index++) {
      const judged = new JudgedWindow(START + index * WINDOW_MS);
      for (const [pod, { ms, share, processes = 1 }] of Object.entries(podsAt(index))) {
        const site = ms === 0 ? new SiteWindow() : windowOf(300 * share, 'GET /a', ms + (Math.abs(index) % 3));
        site.process.observedMs = share * WINDOW_MS;
        const window = new EncodedWindow(encodeWindow(site));
        for (let i = 0; i < processes; i++)
          judged.take({ at: judged.at, pod, instance: `${pod}/${i}`, release: '', window });
      }
      for (const { scope } of inOneTurn(engine.judge(judged))) told.push(scope);
    }
    return told;
  };
  const fast: Pod = { ms: 100, share: 1 };
  const slow: Pod = { ms: 400, share: 1 };

  it('is no pod’s where a deploy has replaced the only one', () => {
    expect(
      toldOfPods((index) => {
        if (index < 0) return { old: fast };
        return index === 0 ? { old: { ...fast, share: 0.5 }, young: { ...slow, share: 0.5 } } : { young: slow };
      }),
    ).toEqual(['routes']);
    expect(
      toldOfPods((index) => {
        if (index < 0) return { old: fast };
        return index < 2 ? { old: { ...fast, share: 0.2 }, young: slow } : { young: slow };
      }),
    ).toEqual(['routes']);
  });

  it('is no pod’s where the other one does not serve the route', () => {
    expect(toldOfPods((index) => ({ web: index < 0 ? fast : slow, worker: { ms: 0, share: 1 } }))).toEqual(['routes']);
  });

  it('is a pod’s where the others have not changed', () => {
    expect(toldOfPods((index) => ({ a: fast, b: index < 0 ? fast : slow, c: fast }))).toEqual(['pod']);
  });

  it('is a pod’s also where others have more processes, and where what serves has begun late in the window', () => {
    const batch = { ms: 0, share: 1, processes: 4 };
    expect(toldOfPods((at) => ({ a: fast, b: fast, c: at < 0 ? fast : slow, batch }))).toEqual(['pod']);
    const [many, few] = [8, 3].map((processes) => ({ ...fast, processes }));
    expect(toldOfPods((at) => ({ a: many!, b: many!, c: { ...few!, ms: at < 0 ? 100 : 3_000 } }))).toEqual(['pod']);
    const late = (at: number, ms: number): Pod => ({ ms, share: at === 1 ? 0.4 : 1 });
    expect(toldOfPods((at) => ({ a: late(at, 100), b: late(at, at < 0 ? 100 : 400), batch }))).toEqual(['pod']);
  });

  it('is the one pod of several that blocks more than all usually do', () => {
    const engine = new VerdictEngine(() => []);
    const told: string[] = [];
    for (let index = -72; index < 6; index++) {
      const window = new JudgedWindow(START + index * WINDOW_MS);
      window.process.observedMs = 3 * WINDOW_MS;
      const all = new RouteSums();
      for (const pod of ['a', 'b', 'c']) {
        const share = index >= 0 && pod === 'b' ? 0.15 : 0.03;
        const sums = Object.assign(sumsOf(300, 50 + (Math.abs(index) % 3), 0), { blockedMs: share * WINDOW_MS });
        const ofPod = Object.assign(new WindowSums(), { longestMs: WINDOW_MS });
        ofPod.process.observedMs = WINDOW_MS;
        ofPod.routes.set('GET /a', sums);
        window.pods.set(pod, ofPod);
        all.add(sums);
      }
      window.routes.set('GET /a', all);
      for (const { metric, scope, text } of inOneTurn(engine.judge(window))) told.push(`${metric} ${scope}: ${text}`);
    }
    expect(told).toEqual([expect.stringMatching(/^blocked pod: .*on pod b \(1 of 3 pods\)/)]);
  });
});

/** The release that the verdict on a route names that is slow from window 0 on. */
function releaseNamed(releasesAt: (index: number) => readonly string[]): string | undefined {
  const engine = new VerdictEngine(() => []);
  for (let index = -72; index < 4; index++) {
    const window = new JudgedWindow(START + index * WINDOW_MS);
    window.process.observedMs = WINDOW_MS;
    for (const release of releasesAt(index)) window.releases.add(release);
    window.routes.set('GET /a', sumsOf(300, (index < 0 ? 100 : 400) + (Math.abs(index) % 3), 0));
    const [verdict] = inOneTurn(engine.judge(window));
    if (verdict !== undefined) return /release v. since .{16}/.exec(verdict.text)?.[0];
  }
  return 'no verdict';
}

describe('the release of a change', () => {
  it.each<[string, string | undefined, (index: number) => readonly string[]]>([
    ['the one that came just before it', 'release v2 since 2026-01-04 23:50', (at) => [at < -2 ? 'v1' : 'v2']],
    [
      'one that has come again',
      'release v2 since 2026-01-05 00:00',
      (at) => [at < -50 || (at >= -40 && at < 0) ? 'v1' : 'v2'],
    ],
    ['the old one, after a rollback', 'release v1 since 2026-01-04 23:45', (at) => [at < -6 || at >= -3 ? 'v1' : 'v2']],
    ['none where a canary has ended', undefined, (at) => (at >= -6 && at < -3 ? ['v1', 'v2'] : ['v1'])],
    ['none where one of two was away for a moment', undefined, (at) => (at === -3 ? ['v2'] : ['v1', 'v2'])],
    ['none where a canary has restarted', undefined, (at) => (at < -40 || at === -2 ? ['v1'] : ['v1', 'v2'])],
    [
      'none where the old one has restarted beside a canary',
      undefined,
      (at) => (at < -40 ? ['v1'] : at === -2 ? ['v2'] : ['v1', 'v2']),
    ],
    ['none of long ago', undefined, (at) => [at < -12 ? 'v1' : 'v2']],
    ['none where there was no other', undefined, () => ['v1']],
  ])('is %s', (_, expected, releasesAt) => {
    expect(releaseNamed(releasesAt)).toBe(expected);
  });
});
