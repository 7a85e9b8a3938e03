import { expect, it } from 'vitest';
import { inOneTurn } from '../../../src/core/turns.js';
import type { RouteSums } from '../../../src/history/rows/window.js';
import { VerdictEngine } from '../../../src/history/verdicts/engine.js';
import { JudgedWindow } from '../../../src/history/verdicts/judged-window.js';
import { DAY_MS, HOUR_MS, WINDOW_MS } from '../../../src/history/rows/tiers.js';
import { sumsOf } from '../../fixtures/history.js';

/** A Monday. */
const START = Date.UTC(2026, 0, 5);

/** What is told of the last hours until day `to`, after a day of windows, and of hours before it; days begin at 0. */
function toldUntil(to: number, msAt: (day: number) => number): string[] {
  const engine = new VerdictEngine(() => []);
  const sums = (at: number, requests: number): Map<string, RouteSums> => {
    const ms = msAt((at - START) / DAY_MS) * (1 + 0.02 * Math.sin((at / WINDOW_MS) * 7.7));
    return new Map([['GET /orders', sumsOf(requests, ms)]]);
  };
  const [windowsFrom, until] = [START + (to - 1.5) * DAY_MS, START + to * DAY_MS];
  for (let at = START; at < windowsFrom; at += HOUR_MS) engine.learnHour(at, sums(at, 3_600));
  const told: string[] = [];
  for (let at = windowsFrom; at < until; at += WINDOW_MS) {
    const window = new JudgedWindow(at);
    window.process.observedMs = WINDOW_MS;
    for (const [route, one] of sums(at, 300)) window.routes.set(route, one);
    for (const { kind, state, against } of inOneTurn(engine.judge(window))) told.push(`${kind} ${state} ${against}`);
  }
  return told;
}

/** Slower by day than by night, and on weekends as by night. */
const ofWeek = (day: number): number => {
  const hour = Math.floor(day * 24 + 1e-6);
  return hour % 168 < 120 && hour % 24 >= 8 && hour % 24 < 20 ? 200 : 100;
};

it.each<[string, number, (day: number) => number]>([
  ['has been faster for a week', 16.25, (day) => (day < 8.5 ? 200 : 100)],
  ['has been faster for two weeks', 29.25, (day) => (day < 14.5 ? 200 : 100)],
  ['has been faster for three weeks', 36.25, (day) => (day < 14.5 ? 200 : 100)],
  ['has been slower for three weeks', 36.25, (day) => (day < 14.5 ? 100 : 200)],
  ['was slow for two hours a week ago', 15, (day) => (day >= 7.5 && day < 7.6 ? 2_000 : 100)],
  ['was slow for two hours a week ago, and not the week before', 17, (day) => (day >= 9.5 && day < 9.6 ? 2_000 : 100)],
  ['has its days and nights', 11, ofWeek],
  ['has its weekends', 13, ofWeek],
  ['has its Mondays', 29, ofWeek],
  ['has its Mondays, and has been faster for two weeks', 29, (day) => ofWeek(day) / (day < 15.5 ? 1 : 2)],
])('nothing is told of a route that %s', (_, to, msAt) => {
  expect(toldUntil(to, msAt)).toEqual([]);
});

it('a night as slow as its days is told, once several weeks know the night', () => {
  expect(toldUntil(31.25, (day) => (day >= 31.1 ? 200 : ofWeek(day)))).toEqual(['worse active week']);
});
