import { describe, expect, it } from 'vitest';
import { mergeTotals, reportTotals } from '../../../../src/index.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';
import { failedIn, type Seen, succeededIn, readTotals } from '../../../fixtures/experiments/totals.js';

interface World {
  users?: number;
  effect?: number;
  failures?: { on: number; off: number };
  route?: string;
  /** Share of users that are on. */
  share?: number;
  seed?: number;
}

/** Ten requests a user of 50 ms, each user with a speed of its own. */
function* world({
  users = 400,
  effect = 0,
  failures = { on: 0, off: 0 },
  route = '/work',
  share = 0.5,
  seed = 1,
}: World): Generator<Seen> {
  const random = new SeededRandom(seed);
  for (let user = 0; user < users; user++) {
    const on = user % 100 < share * 100;
    const speed = 50 * (1 + 0.1 * random.normal()) * (on ? 1 + effect : 1);
    for (let i = 0; i < 10; i++) {
      const durationMs = speed * random.logNormal(0.4);
      const failed = random.next() < failures[on ? 'on' : 'off'];
      yield { user: `${route} ${user}`, on, route, outcome: failed ? failedIn(durationMs) : succeededIn(durationMs) };
    }
  }
}

describe('the report', () => {
  it('says the answer in one line and as an object', () => {
    const report = reportTotals(readTotals('pod', world({ effect: -0.1 })), 'faster', { route: 'GET /work' });
    expect(report.text).toMatch(
      /^faster on GET \/work: latency -\d+\.\d % \(95 % CI -\d+\.\d … -\d+\.\d\), p < 0\.0001, 200 \/ 200 units, MDE \d\.\d %; errors unchanged; sample ratio ok$/,
    );
    const { relativeDelta, ci, control, treatment } = report.comparison!;
    expect(ci[0]).toBeLessThan(-0.1);
    expect(ci[1]).toBeGreaterThan(-0.1);
    expect(report.text).toContain(`latency ${(relativeDelta * 100).toFixed(1)} %`);
    expect([control.count, treatment.count]).toEqual([2_000, 2_000]);
    expect(report).toMatchObject({ gate: 'faster', route: 'GET /work', metric: 'latency' });
  });

  it('always says that both variants share one loop, and who was the only witness', () => {
    const totals = readTotals('pod', world({}));
    expect(reportTotals(totals, 'faster').caveats).toEqual([
      'One process: its machine and its neighbours are part of the result. Merge the totals of more pods.',
      'Both variants share one event loop, heap and CPU: a slow variant slows the other too, and CPU and memory cannot be split by request (a switchback can).',
      'Warm-up: the first requests of a route, until each variant has had 20 (at most 1000 in all), are in the means, but not in the difference.',
    ]);
    const two = mergeTotals(totals, readTotals('other pod', world({ seed: 2 })));
    expect(reportTotals(two, 'faster').caveats.join(' ')).not.toContain('One process');
    expect(reportTotals(mergeTotals(totals, totals), 'faster').caveats[0]).toBe(
      'The totals of one process were added more than once, so the interval is too narrow.',
    );
  });

  it('counts a user of several pods as one unit', () => {
    const merged = mergeTotals(readTotals('a', world({ seed: 1 })), readTotals('b', world({ seed: 2 })));
    const { control, treatment } = reportTotals(merged, 'faster').comparison!;
    expect(Math.abs(control.units - 200)).toBeLessThanOrEqual(1);
    expect(Math.abs(treatment.units - 200)).toBeLessThanOrEqual(1);
    expect(control.count).toBe(4_000);
  });

  it('reports the errors beside the latency, and warns that latency leaves failures out', () => {
    const totals = readTotals('pod', world({ failures: { on: 0.08, off: 0.01 } }));
    const { text, caveats } = reportTotals(totals, 'faster');
    expect(text).toMatch(/; errors [01]\.\d % → \d\.\d %, p < 0\.0001; sample ratio ok$/);
    expect(caveats.join(' ')).toContain('the variants do not fail equally often');
    expect(reportTotals(totals, 'faster', { metric: 'errors' }).text).toMatch(
      /^faster: errors \+\d+\.\d % \(95 % CI \+/,
    );
  });

  it('has an answer where the control never failed, without a relative difference', () => {
    const totals = readTotals('pod', world({ failures: { on: 0.08, off: 0 } }));
    const report = reportTotals(totals, 'faster', { metric: 'errors' });
    expect(report.text).toMatch(/^faster: errors 0\.0 % → [78]\.\d %, p < 0\.0001, 200 \/ 200 units; sample ratio ok$/);
    expect(report.comparison).toMatchObject({ relativeDelta: 0, ci: [-Infinity, Infinity], pValue: 1 });
    expect(reportTotals(totals, 'faster', { metric: 'blocked' }).text).toBe(
      'faster: blocked 0.0 → 0.0 ms a request, no relative difference, 200 / 200 units; errors 0.0 % → 7.8 %, p < 0.0001; sample ratio ok'.replace(
        '7.8',
        /→ (\d\.\d) %/.exec(report.text)![1]!,
      ),
    );
  });

  it.each([
    ['52/48 on 20,000 units', { users: 20_000, share: 0.52 }, 0.5, true],
    ['as asked for', { users: 2_000, share: 0.1 }, 0.1, false],
    ['not as asked for', { users: 2_000, share: 0.15 }, 0.1, true],
  ])('holds the split against the expected share: %s', (_name, given, treatmentShare, suspect) => {
    const report = reportTotals(readTotals('pod', world(given), { treatmentShare }), 'faster');
    expect(report.comparison!.sampleRatioMismatch.suspect).toBe(suspect);
    expect(report.text).toContain(suspect ? 'sample ratio mismatch, p' : 'sample ratio ok');
    expect(report.caveats.some((caveat) => caveat.startsWith('Sample ratio mismatch: '))).toBe(suspect);
  });

  it('takes an almost even split for one that was meant to be even, and does not check any other', () => {
    const unknown = (share: number, users = 20_000) =>
      readTotals('pod', world({ users, share }), { treatmentShare: null });
    const skewed = unknown(0.52);
    expect(reportTotals(skewed, 'faster').text).toContain('sample ratio mismatch');
    const rollout = unknown(0.1, 2_000);
    expect(reportTotals(rollout, 'faster').text).toContain('sample ratio not checked');
    expect(reportTotals(rollout, 'faster').caveats[0]).toContain('The sample ratio was not checked');
  });

  it('says when it cannot know', () => {
    const one = readTotals('pod', world({ users: 1, share: 1 }));
    expect(reportTotals(one, 'faster')).toMatchObject({
      comparison: null,
      text: 'faster: latency unknown: too few units: 1 on, 0 off',
    });
    expect(reportTotals(one, 'faster').caveats[0]).toBe(
      'Too few units: 1 on, 0 off; at least 30 in each are needed for an interval to trust.',
    );
    const all = readTotals('pod', world({ share: 1 }), { treatmentShare: 1 });
    expect(reportTotals(all, 'faster').text).toBe('faster: latency unknown: too few units: 400 on, 0 off');
    expect(reportTotals(one, 'unheard of').text).toBe('unheard of: latency unknown: no request has checked the gate');
    expect(reportTotals(one, 'faster', { metric: 'p95' as never }).text).toContain('there is no such metric');
    expect(reportTotals(one, 'faster', { metric: 'cpu' }).text).toBe(
      'faster: cpu unknown: both variants share one process, so cpu cannot be split by request; alternate the gate with `switchback`',
    );
  });

  it('takes the spread of a metric from units that have it: who only failed says nothing about latency', () => {
    const seen = [...world({ users: 100, effect: -0.1 })];
    const failing: Seen[] = ['x', 'y', 'z'].map((user) => ({ user, on: true, outcome: failedIn(5) }));
    const [without, with_] = [seen, [...seen, ...failing]].map(
      (all) => reportTotals(readTotals('pod', all), 'faster').comparison!,
    );
    expect([with_!.ci, with_!.pValue]).toEqual([without!.ci, without!.pValue]);
    expect(with_!.treatment.units).toBe(53);
  });

  it('notices units that had both variants', () => {
    const swapped = [...world({})].map((seen) => ({ ...seen, on: !seen.on }));
    const totals = readTotals('pod', [...world({}), ...swapped]);
    expect(reportTotals(totals, 'faster').caveats.join(' ')).toMatch(/About (399|400|401) units had both variants/);
  });

  it('notices that clients give up more often on one variant', () => {
    const seen = [...world({})].map((one, i) =>
      one.on && i % 20 === 0 ? { ...one, outcome: { ...one.outcome, succeeded: false, aborted: true } } : one,
    );
    expect(reportTotals(readTotals('pod', seen), 'faster').caveats.join(' ')).toMatch(
      /Clients gave up on 5\.\d % of requests \(off: 0\.0 %\)/,
    );
  });
});
