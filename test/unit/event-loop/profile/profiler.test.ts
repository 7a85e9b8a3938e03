import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CpuProfile } from '../../../../src/event-loop/profile/cpu-profile.js';
import { LoopProfiler } from '../../../../src/event-loop/profile/profiler.js';
import type { Locate, Position } from '../../../../src/event-loop/source-lines.js';
import type { Frame } from '../../../../src/event-loop/sample.js';
import { randomOf } from '../../../fixtures/random.js';
import { frame, route, SimulatedLoop } from '../../../fixtures/simulated-loop.js';

const users = route('/users/:id');
const orders = route('/orders');
const find = frame('find', { typeName: 'UsersService', line: 12, functionLine: 10 });
const handler = frame('findOne', { typeName: 'UsersController', line: 40, functionLine: 38 });
const render = frame('render', { file: '/app/dist/orders.js', line: 7, functionLine: 5 });
const json = frame('stringify', { typeName: 'JSON', file: null, line: 0, functionLine: 0 });

const compiled: Locate = ({ file, line, column }) => (file === null ? null : `${file}:${line}:${column}`);

function harness(locate: (positions: readonly Position[]) => Promise<Locate> = async () => compiled) {
  const loop = new SimulatedLoop(randomOf(1));
  const rates: (number | undefined)[] = [];
  const setRate = (rate?: number): void => void rates.push(rate);
  const profiler = new LoopProfiler(loop.profile, { setRate, locate }, () => loop.nowMs);
  const sample = (of: typeof users | null, frames: readonly Frame[], intervalMs = 50): void => {
    loop.nowMs += 50;
    const state = of === null ? null : loop.request(of);
    loop.profile.add({ atMs: loop.nowMs, askedMs: loop.nowMs, due: 1, frames, state, cut: false }, intervalMs);
  };
  return { loop, rates, profiler, sample, all: { route: null, seconds: null } };
}

/** What viewers draw: milliseconds below each outermost node, from samples and time deltas as V8 writes them. */
function msByRoute({ nodes, samples, timeDeltas, startTime, endTime }: CpuProfile): Record<string, number> {
  expect(timeDeltas.length).toBe(samples.length);
  expect(nodes.map(({ id }) => id)).toEqual(nodes.map((_, i) => i + 1));
  expect(timeDeltas.reduce((sum, delta) => sum + delta, 0)).toBeCloseTo(endTime - startTime, -1);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children }) => children.map((child) => [child, id] as const)));
  expect(parents.size).toBe(nodes.length - 1);
  const sums: Record<string, number> = {};
  for (let i = 0; i < samples.length - 1; i++) {
    let id = samples[i]!;
    while (parents.get(id) !== 1) id = parents.get(id)!;
    const { functionName } = byId.get(id)!.callFrame;
    sums[functionName] = (sums[functionName] ?? 0) + timeDeltas[i + 1]! / 1_000;
  }
  return sums;
}

describe('a profile of what was sampled', () => {
  it('has the routes with their samples and shares of the time', async () => {
    const { profiler, sample, all } = harness();
    for (let i = 0; i < 6; i++) sample(users, [find, handler]);
    for (let i = 0; i < 3; i++) sample(orders, [json, render]);
    sample(null, [frame('tick')]);
    for (let i = 0; i < 10; i++) sample(null, []);
    const profile = await profiler.profile(all);
    expect(profile).toMatchObject({ samples: 20, idle: 10 });
    expect(profile.routes).toEqual([
      { route: 'GET /users/:id', samples: 6, share: 0.3 },
      { route: 'GET /orders', samples: 3, share: 0.15 },
      { route: 'background', samples: 1, share: 0.05 },
    ]);
  });

  it('is a .cpuprofile with the routes as the outermost calls', async () => {
    const { loop, profiler, sample, all } = harness();
    for (let i = 0; i < 6; i++) sample(users, [find, handler]);
    sample(users, [handler], 10);
    for (let i = 0; i < 3; i++) sample(orders, [json, render]);
    for (let i = 0; i < 10; i++) sample(null, []);
    // Nothing is sampled while no request is in flight: that time is idle.
    loop.nowMs += 5_000;
    const profile = (await profiler.profile(all)).toCpuProfile() as CpuProfile;
    expect(JSON.parse(JSON.stringify(profile))).toEqual(profile);
    const [root] = profile.nodes;
    expect(root).toMatchObject({ id: 1, hitCount: 0, callFrame: { functionName: '(root)', lineNumber: -1, url: '' } });
    expect(msByRoute(profile)).toEqual({ 'GET /users/:id': 310, 'GET /orders': 150, '(idle)': 6_000 - 460 });
    const node = (name: string) => profile.nodes.find(({ callFrame }) => callFrame.functionName === name)!;
    // Lines and columns count from 0.
    expect(node('UsersService.find')).toMatchObject({
      hitCount: 6,
      callFrame: { url: '/app/dist/main.js', lineNumber: 11, columnNumber: 0 },
    });
    expect(node('UsersController.findOne').children).toEqual([node('UsersService.find').id]);
    expect(node('JSON.stringify')).toMatchObject({
      hitCount: 3,
      callFrame: { url: '', lineNumber: -1, scriptId: '0' },
    });
    expect(profile.nodes.reduce((sum, { hitCount }) => sum + hitCount, 0)).toBe(profile.samples.length - 1);
  });

  it('is of one route where one is asked for', async () => {
    const { profiler, sample } = harness();
    for (let i = 0; i < 6; i++) sample(users, [find, handler]);
    for (let i = 0; i < 4; i++) sample(orders, [render]);
    const profile = await profiler.profile({ route: 'GET /orders', seconds: null });
    expect(profile.routes).toEqual([{ route: 'GET /orders', samples: 4, share: 0.4 }]);
    expect(msByRoute(profile.toCpuProfile() as CpuProfile)).toEqual({ 'GET /orders': 200 });
    const none = await profiler.profile({ route: 'GET /nowhere', seconds: null });
    expect(none.routes).toEqual([]);
    expect(none.toCpuProfile()).toMatchObject({ nodes: [{ id: 1 }], samples: [], timeDeltas: [] });
  });

  it('has one place for a function, whichever of its lines ran below whichever caller', async () => {
    const { profiler, sample, all } = harness();
    sample(users, [{ ...find, line: 15 }, handler]);
    sample(orders, [{ ...find, line: 12 }, render]);
    const { nodes } = (await profiler.profile(all)).toCpuProfile() as CpuProfile;
    const lines = nodes.flatMap(({ callFrame }) =>
      callFrame.functionName === 'UsersService.find' ? [callFrame.lineNumber] : [],
    );
    expect(lines).toEqual([11, 11]);
  });

  it('has the places in the sources', async () => {
    const asked: (number | null)[] = [];
    const { profiler, sample, all } = harness(async (positions) => {
      asked.push(...positions.map(({ line }) => line));
      return ({ line }) => `src/users.ts:${line + 1_000}:3`;
    });
    for (let i = 1; i <= 20; i++) sample(users, [frame(`f${i}`, { functionLine: i, line: i })]);
    const { nodes } = (await profiler.profile(all)).toCpuProfile() as CpuProfile;
    expect(asked).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(nodes.find(({ callFrame }) => callFrame.functionName === 'f3')!.callFrame).toMatchObject({
      url: 'src/users.ts',
      lineNumber: 1_002,
      columnNumber: 2,
    });
  });
});

describe('a profile of the next seconds', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is of these alone, at 100 samples a second', async () => {
    const { loop, profiler, sample, rates } = harness();
    for (let i = 0; i < 50; i++) sample(orders, [render]);
    const made = profiler.profile({ route: null, seconds: 2 });
    expect(rates).toEqual([100]);
    for (let i = 0; i < 20; i++) sample(users, [find, handler], 10);
    loop.nowMs += 1_000;
    await vi.advanceTimersByTimeAsync(2_000);
    const profile = await made;
    expect(rates).toEqual([100, undefined]);
    expect(profile.routes).toEqual([{ route: 'GET /users/:id', samples: 20, share: 0.1 }]);
    expect(profile.samples).toBe(20);
    // The samples count in what is kept as well, for the time that each represents.
    const kept = await profiler.profile({ route: null, seconds: null });
    expect(kept.routes.map(({ route, samples }) => [route, samples])).toEqual([
      ['GET /orders', 50],
      ['GET /users/:id', 20],
    ]);
  });

  it('ends when the application closes', async () => {
    const { profiler, sample, rates } = harness();
    const made = profiler.profile({ route: null, seconds: 300 });
    sample(users, [find, handler]);
    profiler.close();
    expect((await made).samples).toBe(1);
    expect(rates).toEqual([100, undefined]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends beside another one, which keeps its rate', async () => {
    const { profiler, rates } = harness();
    const made = [2, 4].map((seconds) => profiler.profile({ route: null, seconds }));
    await vi.advanceTimersByTimeAsync(2_000);
    await made[0];
    expect(rates).not.toContain(undefined);
    await vi.advanceTimersByTimeAsync(2_000);
    await made[1];
    expect(rates.at(-1)).toBeUndefined();
  });
});
