import { describe, expect, it } from 'vitest';
import { readFlame, type CpuProfile } from '../../../src/dashboard/page/flame.js';

const frame = (functionName: string, url = '', line = 1) => ({ functionName, url, lineNumber: line - 1 });
const OWN = { name: 'render', file: 'src/reports.ts' };

/** Under one route: `render` twice, below two callers, and once from a package. */
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2] },
    { id: 2, callFrame: frame('GET /report'), children: [3, 5] },
    { id: 3, callFrame: frame('all', 'src/reports.ts', 10), children: [4] },
    { id: 4, callFrame: frame('Reports.render', 'src/reports.ts', 48), children: [6] },
    { id: 5, callFrame: frame('one', 'src/reports.ts', 20), children: [7] },
    { id: 6, callFrame: frame('', 'node_modules/pdf/index.js', 3), children: [] },
    { id: 7, callFrame: frame('render', 'src/reports.ts', 50), children: [8] },
    { id: 8, callFrame: frame('render', 'src/other.ts', 50), children: [] },
  ],
  samples: [4, 6, 7, 8, 8],
  timeDeltas: [0, 10_000, 30_000, 20_000, 5_000],
};

describe('a flame graph', () => {
  it('is as wide as functions and their calls took, the longest call first', () => {
    const { name, ms, calls } = readFlame(profile, null)!;
    expect([name, ms]).toEqual(['all', 65]);
    expect(calls.map((call) => [call.name, call.ms, call.place, call.kind])).toEqual([
      ['all', 40, 'src/reports.ts:10', 'own'],
      ['one', 25, 'src/reports.ts:20', 'own'],
    ]);
    expect(calls[0]!.calls[0]!.calls[0]).toMatchObject({ name: '(anonymous)', ms: 30, kind: 'package' });
  });

  it('of a block is what its function calls, whoever called it', () => {
    const { ms, calls } = readFlame(profile, OWN)!;
    expect(ms).toBe(65);
    expect(calls.map((call) => [call.name, call.ms])).toEqual([
      ['(anonymous)', 30],
      ['render', 5],
    ]);
    expect(readFlame(profile, { name: 'render', file: 'src/nowhere.ts' })).toBeNull();
  });

  it('is null without a sample', () => {
    expect(readFlame({ nodes: profile.nodes, samples: [], timeDeltas: [] }, null)).toBeNull();
    expect(readFlame({ nodes: [profile.nodes[0]!], samples: [], timeDeltas: [] }, null)).toBeNull();
  });
});
