import { describe, expect, it } from 'vitest';
import { Gate } from '../../../packages/load/src/gate.js';
import { describeOutcome, formatColumns, judged, otherAnswers } from '../../../packages/load/src/judgement.js';
import { runOpenLoop } from '../../../packages/load/src/open-loop.js';
import { makeGet } from '../../../packages/load/src/traffic.js';

interface Asked {
  readonly recorded?: number;
  /** Without one, it ends without an answer. */
  readonly answered?: number;
}

/** Twenty requests, of these kinds by turns. */
async function judge(kinds: readonly Asked[], gate: string | null = null) {
  const load = await runOpenLoop({
    offsetsMs: new Float64Array(20),
    requestAt: (index) => ({ ...makeGet('/me'), status: kinds[index % kinds.length]!.recorded ?? 200 }),
    async send(_, index) {
      const { answered } = kinds[index % kinds.length]!;
      const failure = answered === undefined ? 'ECONNREFUSED' : null;
      return { status: answered ?? 0, failure, body: null, type: '', location: '' };
    },
  });
  // A busy machine starts them late: that is judged elsewhere.
  const judgement = judged({ ...load, voidBecause: null }, gate === null ? null : new Gate(gate));
  return { judgement, said: describeOutcome(judgement), notes: [...otherAnswers(judgement, true)] };
}

describe('answers that refuse what was answered when it was recorded', () => {
  it.each<[string, Asked[]]>([
    ['all are sent to a login', [{ answered: 302 }]],
    ['all ask for a token', [{ answered: 401 }]],
    ['all are sent elsewhere, and were unchanged for their clients', [{ recorded: 304, answered: 302 }]],
  ])('fail the run where %s', async (_, kinds) => {
    const { said, notes } = await judge(kinds);
    expect(said).toBe('fails 20 of 20 answers refuse what was to be answered');
    expect(notes).toEqual([expect.stringMatching(/^20 of 20 answers have another status than was recorded, most /)]);
  });

  it('are at most half of them where half were redirections already', async () => {
    const kinds = [{ answered: 302 }, { recorded: 301, answered: 302 }];
    const { said, notes } = await judge(kinds);
    expect(said).toBe('holds');
    expect(notes).toEqual([expect.stringContaining('20 of 20 answers have another status than was recorded')]);
  });

  it('are none where clients had the answer already', async () => {
    expect((await judge([{ answered: 304 }])).said).toBe('holds');
  });
});

describe('a run without an answer', () => {
  it('fails, also without a gate', async () => {
    expect((await judge([{}])).said).toBe('fails no answer at all');
  });

  it('is none where half of the requests are answered', async () => {
    expect((await judge([{}, { answered: 200 }])).said).toBe('holds');
  });
});

describe('an error is never fast', () => {
  it.each<[string, Asked]>([
    ['end without an answer', {}],
    ['end with a 503 at once', { answered: 503 }],
    ['end with a 429 at once', { answered: 429 }],
  ])('a gate of latency alone fails where requests %s', async (_, failed) => {
    const kinds = [failed, failed, { answered: 200 }, { answered: 200 }, { answered: 200 }];
    const { judgement, said } = await judge(kinds, 'p50<10s p95<10s');
    expect(said).toBe('fails p95<10s: an error');
    expect(formatColumns(judgement)).toMatch(/^ +20 requests {2}p50 .* ms {2}p95 +error /);
    expect((await judge(kinds, 'p50<10s')).said).toBe('holds');
  });
});
