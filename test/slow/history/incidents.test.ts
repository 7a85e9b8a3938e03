import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../../src/core/verdict.js';
import type { FleetSource } from '../../../src/history/history-store.js';
import { EncodedWindow } from '../../../src/history/rows/encoded-window.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { VerdictKeeper } from '../../../src/history/verdicts/verdict-keeper.js';
import { SCENARIOS, type Scenario } from '../../fixtures/incidents/scenarios.js';
import {
  DAY_MS,
  HOUR_MS,
  Simulation,
  START,
  usualWorld,
  WINDOW_MS,
  type World,
} from '../../fixtures/incidents/world.js';

const LONG = process.env['PERF_LONG'] !== undefined;

const FROM = START + DAY_MS + 10 * HOUR_MS;
const usual = new Map<string, HistoryRow[]>();

/** The usual before every incident: each judges it once more. */
const USUAL_MS = LONG ? DAY_MS : 6 * HOUR_MS;

function usualRows(pods: readonly string[]): readonly HistoryRow[] {
  const known = usual.get(pods.join());
  if (known !== undefined) return known;
  const simulation = new Simulation(1, pods);
  const rows: HistoryRow[] = [];
  for (let at = FROM - USUAL_MS; at < FROM; at += WINDOW_MS) rows.push(...simulation.rows(at, usualWorld));
  usual.set(pods.join(), rows);
  return rows;
}

interface Told {
  /** When the window begins that was judged. */
  readonly at: number;
  readonly verdict: Verdict;
}

/** What a process says of the rows that it finds in its store. */
class Observer {
  readonly told: Told[] = [];
  private readonly keeper: VerdictKeeper;
  private readonly source: FleetSource;
  private at = 0;

  constructor(
    private readonly simulation: Simulation,
    private readonly rows: HistoryRow[],
  ) {
    this.source = {
      shared: false,
      fleet: async () => null,
      read: async (tier, { from, to }, begin) => {
        const take = begin();
        for (const row of rows)
          if (row.tier === tier && row.at >= from && row.at < to) take({ ...row, window: new EncodedWindow(row.data) });
        return true;
      },
    };
    this.keeper = new VerdictKeeper({
      listUsers: simulation.listUsers,
      report: (verdict) => this.told.push({ at: this.at, verdict }),
      failed: (error) => {
        throw error;
      },
    });
  }

  recall(nowMs: number): Promise<void> {
    return this.keeper.recall(this.source, nowMs);
  }

  /** Five minutes of requests, and two minutes later the look at them. */
  async window(at: number, worldOf: (pod: string) => World): Promise<void> {
    this.rows.push(...this.simulation.rows(at, worldOf));
    this.at = at;
    await this.keeper.judge(this.source, at + WINDOW_MS + 120_000);
  }
}

/** The usual, an hour and a half of the incident, an hour after it. */
async function tellOf(
  { happens, pods: given }: Scenario,
  seed: number,
  podCount: number,
): Promise<{ told: Told[]; from: number; to: number }> {
  const pods = given ?? Array.from({ length: podCount }, (_, index) => `pod-${index + 1}`);
  const observer = new Observer(new Simulation(seed, pods), [...usualRows(pods)]);
  const [from, to] = [FROM, FROM + 1.5 * HOUR_MS];
  await observer.recall(from + 120_000);
  for (let at = FROM; at < to + HOUR_MS; at += WINDOW_MS) {
    await observer.window(at, (pod) => {
      const world = usualWorld();
      if (at >= from && at < to) happens(world, pod);
      return world;
    });
  }
  return { told: observer.told, from, to };
}

/** What is wrong with what was said; null: it is right. */
async function wrongWith(scenario: Scenario, seed: number, podCount: number): Promise<string | null> {
  const { told, from, to } = await tellOf(scenario, seed, podCount);
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

  it.each(LONG ? [1, 10] : [1])(
    `${chosen.length} of ${SCENARIOS.length} with %i pods: the right scope and first reason, opened and resolved once`,
    async (podCount) => {
      const wrong: string[] = [];
      for (const [index, scenario] of chosen.entries()) {
        const reason = await wrongWith(scenario, 1_000 + index, podCount);
        if (reason !== null) wrong.push(`${scenario.name}:\n  ${reason}`);
      }
      // Of 26, at most 2 may be wrong.
      expect(wrong.length <= (LONG ? 2 : 0) ? '' : wrong.join('\n')).toBe('');
    },
    600_000,
  );
});

describe('verdicts without an incident', () => {
  const days = LONG ? 14 : 2;
  it(`${days} days with days, nights and a weekend: at most one`, async () => {
    const observer = new Observer(new Simulation(7), []);
    const from = START + (LONG ? 0 : 4 * DAY_MS);
    await observer.recall(from);
    for (let at = from; at < from + days * DAY_MS; at += WINDOW_MS) await observer.window(at, usualWorld);
    const opened = observer.told.filter(({ verdict }) => verdict.state === 'active').map(({ verdict }) => verdict.text);
    expect(opened.length <= 1 ? [] : opened).toEqual([]);
  }, 600_000);
});
