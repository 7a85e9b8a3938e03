import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RequestState } from '../../../src/core/request-state.js';
import { blockRecordOf } from '../../../src/event-loop/block-record.js';
import type { Look, Verdict } from '../../../src/event-loop/classify.js';
import type { Frame } from '../../../src/event-loop/frame.js';
import { SecretNames } from '../../../src/event-loop/replay/secret-names.js';
import { Mappings } from '../../../src/event-loop/mappings.js';
import { MAX_MAP_BYTES, SourceMaps } from '../../../src/event-loop/source-maps.js';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'perf-bundle-')));
afterAll(() => rmSync(folder, { recursive: true }));
/** A bundle whose line 1 came from a dependency and whose line 2 came from the user's own file, line 5. */
const bundle = join(folder, 'main.js');
writeFileSync(bundle, 'dependency();\nown();\n//# sourceMappingURL=main.js.map\n');
const sources = ['node_modules/lodash/sortBy.js', 'src/render.ts'];
writeFileSync(`${bundle}.map`, JSON.stringify({ version: 3, sources, names: [], mappings: 'AAAA;ACIA' }));

const frame = (name: string, line: number): Frame => ({
  name,
  file: bundle,
  line,
  column: 1,
  functionLine: 1,
  async: false,
});
const standstill = {
  seq: 1,
  startMs: 0,
  endMs: 100,
  cpuRatio: 1,
  starvedUsBefore: 0,
  runDelayUsBefore: 0,
  polls: 1,
};
const recordOf = (frames: readonly Frame[]) => {
  const look: Look<RequestState> = {
    requestedMs: 10,
    servedMs: 11,
    state: null,
    source: null,
    frames,
    cut: false,
    settledNext: null,
  };
  const verdict: Verdict<RequestState> = {
    cause: 'javascript',
    culprit: null,
    suspect: null,
    provenMs: 90,
    shown: [look],
  };
  return blockRecordOf(standstill, verdict, 0, [], {
    secrets: new SecretNames([]),
    replay: null,
    sourceMaps: new SourceMaps(folder, MAX_MAP_BYTES, Mappings),
    ownFolder: null,
  });
};

describe('the line of a block in a bundle', () => {
  it('is the user’s, not that of a dependency in the same file, which stays in the stack', () => {
    const record = recordOf([frame('sortBy', 1), frame('renderRows', 2)]);
    expect(record.location).toBe('src/render.ts:5:1');
    expect(record.stack).toEqual(['sortBy (node_modules/lodash/sortBy.js:1:1)', 'renderRows (src/render.ts:5:1)']);
  });

  it('is unknown where only dependencies ran', () => {
    expect(recordOf([frame('sortBy', 1)]).location).toBeNull();
  });
});
