import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Verdict } from '../../../src/core/verdict.js';
import { fileHistory, type HistoryStore } from '../../../src/index.js';
import { VerdictKeeper } from '../../../src/history/verdicts/verdict-keeper.js';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/history/rows/tiers.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';
import { sharedStore } from '../../fixtures/shared-history.js';

const START = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 10 * HOUR_MS;

// How long a process was there is of its scripted minutes, not of this machine.
vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue({ active: 0, idle: MINUTE_MS, utilization: 0 });

/** A process with scripted requests, from `nowMs` on. */
class Pod extends ScriptedHistory {
  readonly told: Verdict[];

  constructor(pod: string, store: HistoryStore | null, nowMs = START, verdicts = true) {
    const own = { pod, instance: `${pod}/1/${nowMs}`, release: '1.0.0' };
    const told: Verdict[] = [];
    const judge = new VerdictKeeper({
      listUsers: () => [],
      report: (verdict) => told.push(verdict),
      failed: (error) => {
        throw error;
      },
    });
    super(nowMs, { own, store, judge: verdicts ? judge : null });
    this.told = told;
  }

  /** So many minutes in which `GET /insights` takes so long. */
  async serve(minutes: number, insightsMs: number): Promise<void> {
    const waits = { target: 'http ghe.acme.com', upstreamMs: insightsMs - 20 };
    await this.minutes(minutes, (counters) => {
      for (let i = 0; i < 20; i++) {
        counters.requests('GET /insights', 1, insightsMs + (i % 5), waits);
        counters.requests('GET /cart', 1, 40 + (i % 3));
      }
    });
  }
}

describe('verdicts of a process', () => {
  let directory = '';
  afterEach(() => {
    if (directory !== '') rmSync(directory, { recursive: true, force: true });
  });

  it('open and are resolved once, and stand in the list with what they are made of', async () => {
    const pod = new Pod('a', null);
    await pod.serve(120, 100);
    expect(pod.history.verdicts()).toEqual([]);
    await pod.serve(40, 2_000);
    const [active, ...others] = pod.history.verdicts();
    expect(others).toEqual([]);
    expect(active).toMatchObject({
      kind: 'worse',
      state: 'active',
      scope: 'upstream',
      metric: 'latency',
      since: START + 2 * HOUR_MS,
      routes: ['GET /insights'],
      against: 'day',
      because: [{ part: 'upstream', name: 'http ghe.acme.com', share: expect.closeTo(1, 6) }],
    });
    expect(active!.change).toBeGreaterThan(15);
    expect(active!.ci[0]).toBeLessThan(active!.change);
    expect(active!.text).toMatch(
      /^worse since .* UTC: GET \/insights 102 → 2,002 ms; calls to http ghe\.acme\.com\. 100 % of it is/,
    );
    await pod.serve(40, 100);
    expect(pod.history.verdicts().map(({ state, id }) => [state, id])).toEqual([['resolved', active!.id]]);
    expect(pod.told.map(({ state }) => state)).toEqual(['active', 'resolved']);
  });

  it('begin when it became slow, not with the last requests before the night', async () => {
    const pod = new Pod('a', null);
    await pod.serve(121, 100);
    pod.nowMs += 7 * HOUR_MS - MINUTE_MS;
    await pod.history.tick();
    await pod.serve(20, 2_000);
    const [slow, ...others] = pod.history.verdicts().filter(({ routes }) => routes.includes('GET /insights'));
    expect(others).toEqual([]);
    expect((slow!.since - START) / HOUR_MS).toBe(9);
  });

  it('are of routes that somebody asks for, not of one that was a little slow hours ago', async () => {
    const pod = new Pod('a', null);
    for (let minute = 0; minute < 400; minute++) {
      if (minute < 150) for (let i = 0; i < 20; i++) pod.counters.requests('GET /old', 1, minute < 130 ? 100 : 130);
      await pod.serve(1, minute < 380 ? 100 : 2_000);
    }
    expect(pod.history.verdicts()).toMatchObject([{ routes: ['GET /insights'] }]);
  });

  it('are the same whoever looks meanwhile: a few requests far out are none', async () => {
    const pod = new Pod('a', null);
    const half = (firstMs: number): void => {
      for (let i = 0; i < 30; i++) pod.counters.requests('GET /insights', 1, i === 0 ? firstMs : 100 + (i % 5));
      pod.nowMs += MINUTE_MS / 2;
    };
    for (let minute = 0; minute < 150; minute++) {
      half(minute < 120 ? 100 : 10_000);
      await pod.history.history({ from: START, to: pod.nowMs });
      half(100);
      await pod.history.tick();
    }
    expect(pod.history.verdicts().map(({ text }) => text)).toEqual([]);
  });

  it('are known after a restart, and not told again', async () => {
    directory = mkdtempSync(join(tmpdir(), 'perf-verdicts-'));
    const store = fileHistory({ directory });
    const first = new Pod('a', store);
    await first.serve(120, 100);
    await first.serve(20, 2_000);
    expect(first.told.length).toBe(1);
    await first.history.close(5_000);
    const second = new Pod('a', store, first.nowMs);
    await second.serve(10, 2_000);
    expect(second.history.verdicts().map(({ id, state }) => [id, state])).toEqual([[first.told[0]!.id, 'active']]);
    expect(second.told).toEqual([]);
    await second.serve(20, 100);
    expect(second.told.map(({ id, state }) => [id, state])).toEqual([[first.told[0]!.id, 'resolved']]);
    await second.history.close(5_000);
  });

  it('of several pods are judged together, and told by one of them', async () => {
    const store = sharedStore();
    const pods = ['a', 'b', 'c'].map((name) => new Pod(name, store));
    for (let minute = 0; minute < 115; minute++)
      for (const pod of pods) await pod.serve(1, pod === pods[1] && minute >= 90 ? 2_000 : 100);
    for (const pod of pods) {
      expect(pod.history.verdicts()).toMatchObject([{ scope: 'pod', state: 'active', routes: ['GET /insights'] }]);
      expect(pod.history.verdicts()[0]!.text).toContain('on pod b (1 of 3 pods)');
    }
    expect(pods.map(({ told }) => told.length)).toEqual([1, 0, 0]);
  });

  it.each([
    ['one of the pods', 1, 101],
    ['all pods, for others', 3, 98],
    ['all pods, for others that begin later', 3, 101],
  ])('are told by one that is still there when a deploy has ended %s', async (_, ending, begins) => {
    const store = sharedStore();
    const old = ['a', 'b', 'c'].map((name) => new Pod(name, store));
    let pods = [...old];
    for (let minute = 0; minute < 125; minute++) {
      if (minute === 98) {
        for (const pod of old.slice(0, ending)) await pod.history.close(5_000);
        pods = old.slice(ending);
      }
      if (minute === begins) pods.push(...['0', 'd'].map((name) => new Pod(name, store, START + begins * MINUTE_MS)));
      for (const pod of pods) await pod.serve(1, minute < 90 ? 100 : 2_000);
    }
    for (const pod of pods) expect(pod.history.verdicts()).toMatchObject([{ routes: ['GET /insights'] }]);
    expect([...old, ...pods.filter((pod) => !old.includes(pod))].flatMap(({ told }) => told).length).toBe(1);
  });

  it('of the fleet are judged beside a part of a window that nobody of ours has published', async () => {
    const store = sharedStore();
    const stranger = await store.open({ keptMs: () => 1, maxBytes: 1 });
    const pods = ['a', 'b'].map((name) => new Pod(name, store));
    for (let minute = 0; minute < 115; minute++) {
      const at = START + 5 * MINUTE_MS * Math.floor(minute / 5);
      const row = { tier: '5m', at, pod: 'x', instance: 'x', release: '', data: Buffer.from([1]) } as const;
      if (minute % 5 === 0) await stranger.fleet!.publish({ pod: 'x' } as never, [row]);
      for (const pod of pods) await pod.serve(1, minute >= 90 ? 2_000 : 100);
    }
    expect(pods[0]!.history.verdicts()).toMatchObject([{ state: 'active', routes: ['GET /insights'] }]);
  });

  it('of a leader that has ended are resolved by the next one, also days after they opened', async () => {
    const store = sharedStore();
    const serve = (pod: Pod, windows: number, insightsMs: number): Promise<void> =>
      pod.minutes(
        windows,
        (counters) => {
          for (let i = 0; i < 60; i++) counters.requests('GET /insights', 1, insightsMs + (i % 5));
        },
        5 * MINUTE_MS,
      );
    const first = new Pod('a', store, START - 4 * DAY_MS);
    await serve(first, 40, 100);
    // Longer ago than what the next one reads again.
    await serve(first, 2 * 288 + 24, 2_000);
    expect(first.told.map(({ state }) => state)).toEqual(['active']);
    await first.history.close(5_000);
    const second = new Pod('b', store, first.nowMs);
    await serve(second, 6, 2_000);
    expect(second.told).toMatchObject([{ id: first.told[0]!.id, state: 'resolved' }]);
    expect(second.told[0]!.text).toContain('the usual from now on');
    expect(second.history.verdicts()).toMatchObject([{ id: first.told[0]!.id, state: 'resolved' }]);
  });

  it('of the fleet are shown as they were while the next leader cannot read the past, and judged when it can', async () => {
    let isUnreadable = false;
    const store = sharedStore({ isUnreadable: () => isUnreadable });
    const first = new Pod('a', store);
    await first.serve(100, 100);
    await first.serve(20, 2_000);
    await first.history.close(5_000);
    isUnreadable = true;
    const second = new Pod('b', store, first.nowMs);
    await second.serve(10, 2_000);
    expect(second.history.verdicts()).toMatchObject([{ id: first.told[0]!.id, state: 'active' }]);
    isUnreadable = false;
    await second.serve(10, 2_000);
    await second.serve(30, 100);
    expect(second.told).toMatchObject([{ id: first.told[0]!.id, state: 'resolved' }]);
  });

  it('of the fleet are judged by another pod when the one that leads can read no more', async () => {
    let isUnreadable = false;
    const store = sharedStore({ isUnreadable: (nth) => isUnreadable && nth === 1 });
    const pods = ['a', 'b'].map((name) => new Pod(name, store));
    for (let minute = 0; minute < 120; minute++) {
      isUnreadable = minute >= 85;
      for (const pod of pods) await pod.serve(1, minute >= 90 ? 2_000 : 100);
    }
    for (const pod of pods) expect(pod.history.verdicts()).toMatchObject([{ routes: ['GET /insights'] }]);
    expect(pods.map(({ told }) => told.length)).toEqual([0, 1]);
  });

  it('are of routes, not of the many small ones that a bucket has no room for', async () => {
    const pod = new Pod('a', null);
    await pod.minutes(
      20,
      (counters, window) => {
        for (let i = 0; i < 299; i++) counters.requests(`GET /route-${i}`, 60, 100 + (window % 5));
        for (let i = 299; i < 330; i++)
          counters.requests(`GET /route-${i}`, 5, window < 16 ? 100 + (window % 5) : 2_000);
      },
      5 * MINUTE_MS,
    );
    const range = { from: START, to: pod.nowMs };
    expect((await pod.history.history(range, { route: 'other routes' })).points[0]!.count).toBeGreaterThan(0);
    expect(pod.history.verdicts()).toEqual([]);
  });

  it('are not made with `verdicts: false`', async () => {
    const pod = new Pod('a', null, START, false);
    await pod.serve(75, 100);
    await pod.serve(25, 2_000);
    expect([pod.history.verdicts(), pod.told]).toEqual([[], []]);
  });
});
