import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../../src/core/verdict.js';
import { VerdictEngine } from '../../../src/history/verdicts/engine.js';
import type { JudgedWindow } from '../../../src/history/verdicts/judged-window.js';
import { SCENARIOS, type Scenario } from '../../fixtures/incidents/scenarios.js';
import { DAY_MS, HOUR_MS, Simulation, START, usualWorld, WINDOW_MS } from '../../fixtures/incidents/world.js';
import { allOf } from '../../fixtures/steps.js';

const LONG = process.env['PERF_LONG'] !== undefined;

interface Told {
  readonly at: number;
  readonly verdict: Verdict;
}

const FROM = START + DAY_MS + 10 * HOUR_MS;
const usual = new Map<string, JudgedWindow[]>();

/** A day of the usual, the same for every incident. */
function usualWindows(pods: readonly string[]): readonly JudgedWindow[] {
  const known = usual.get(pods.join());
  if (known !== undefined) return known;
  const simulation = new Simulation(1, pods);
  const windows: JudgedWindow[] = [];
  for (let at = START + 10 * HOUR_MS; at < FROM; at += WINDOW_MS) windows.push(simulation.window(at, usualWorld));
  usual.set(pods.join(), windows);
  return windows;
}

/** The usual, an hour and a half of the incident, an hour after it. */
function tellOf({ happens, pods = ['pod-1'] }: Scenario, seed: number): { told: Told[]; from: number; to: number } {
  const simulation = new Simulation(seed, pods);
  const engine = new VerdictEngine(simulation.usersOf);
  const [from, to] = [FROM, FROM + 1.5 * HOUR_MS];
  const told: Told[] = usualWindows(pods).flatMap((window) =>
    allOf(engine.judge(window)).map((verdict) => ({ at: window.at, verdict })),
  );
  for (let at = FROM; at < to + HOUR_MS; at += WINDOW_MS) {
    const window = simulation.window(at, (pod) => {
      const world = usualWorld();
      if (at >= from && at < to) happens(world, pod);
      return world;
    });
    for (const verdict of allOf(engine.judge(window))) told.push({ at, verdict });
  }
  return { told, from, to };
}

/** What is wrong with what was said; null: it is right. */
function wrongWith(scenario: Scenario, seed: number): string | null {
  const { told, from, to } = tellOf(scenario, seed);
  const { expected } = scenario;
  const said = told.map(({ at, verdict }) => `${(at - from) / 60_000} min: ${verdict.text}`).join('\n  ');
  if (expected === null) return told.length === 0 ? null : said;
  const [opened, resolved, ...more] = told;
  if (opened === undefined) return 'nothing was said';
  const { verdict } = opened;
  const [main] = verdict.because;
  const share = verdict.because.reduce((sum, reason) => sum + reason.share, 0);
  const isRight =
    verdict.kind === (expected.kind ?? 'worse') &&
    verdict.metric === (expected.metric ?? 'latency') &&
    verdict.scope === expected.scope &&
    verdict.against === (expected.against ?? 'day') &&
    main?.part === expected.part &&
    `${main.name} ${verdict.text}`.includes(expected.names) &&
    Math.abs(share - 1) < 1e-9 &&
    opened.at - from <= 20 * 60_000 &&
    resolved?.verdict.id === verdict.id &&
    resolved.verdict.state === 'resolved' &&
    resolved.at - to <= 30 * 60_000 &&
    more.length === 0;
  return isRight ? null : said;
}

describe('verdicts of scripted incidents', () => {
  const chosen = LONG ? SCENARIOS : SCENARIOS.filter((_, index) => index % 5 === 0);

  it(`${chosen.length} of ${SCENARIOS.length}: the right scope and first reason, opened and resolved once`, () => {
    const wrong = chosen.flatMap((scenario, index) => {
      const reason = wrongWith(scenario, 1_000 + index);
      return reason === null ? [] : [`${scenario.name}:\n  ${reason}`];
    });
    // Of 26, at most 2 may be wrong.
    expect(wrong.length <= (LONG ? 2 : 0) ? '' : wrong.join('\n')).toBe('');
  }, 600_000);
});

describe('verdicts without an incident', () => {
  const days = LONG ? 14 : 2;
  it(`${days} days with days, nights and a weekend: at most one`, () => {
    const simulation = new Simulation(7);
    const engine = new VerdictEngine(simulation.usersOf);
    const opened: string[] = [];
    const from = START + (LONG ? 0 : 4 * DAY_MS);
    for (let at = from; at < from + days * DAY_MS; at += WINDOW_MS) {
      for (const { state, text } of allOf(engine.judge(simulation.window(at, usualWorld)))) {
        if (state === 'active') opened.push(text);
      }
    }
    expect(opened.length <= 1 ? [] : opened).toEqual([]);
  }, 600_000);
});
