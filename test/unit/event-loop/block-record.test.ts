import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RequestState } from '../../../src/request/request-state.js';
import { createBlockRecord } from '../../../src/event-loop/block-record.js';
import type { Classification } from '../../../src/event-loop/block.js';
import type { Frame, Sample } from '../../../src/event-loop/sample.js';
import { ProviderMethods } from '../../../src/event-loop/provider-methods.js';
import { SecretNames } from '../../../src/core/secret-names.js';
import { SourceLines, type Locate } from '../../../src/event-loop/source-lines.js';
import { sample } from '../../fixtures/samples.js';

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
const block = {
  inPieces: false,
  sinceMs: 0,
  startMs: 0,
  endMs: 100,
  cpuRatio: 1,
  readLostMs: () => 0,
};
const owner = {
  deferrer: null,
  experiments: null,
  sharedAnswers: null,
  nextId: () => 'id',
  findRoute: () => null,
};
const rules = {
  secrets: new SecretNames([]),
  replay: { allowHeaders: [], maxBodyBytes: 0 },
  ownFolder: null,
  methods: null,
  stack: true,
  address: () => null,
};
const maps = new SourceLines(folder, 1_000_000);
const locate: Locate = (position) => maps.locate(position);
const sampleOf = (frames: readonly Frame[], over: Partial<Sample> = {}) => sample(null, 11, { frames, ...over });
const classificationOf = (...shown: Sample[]): Classification => ({
  cause: 'javascript',
  request: null,
  suspect: null,
  othersWaited: true,
  provenMs: 90,
  shown,
});
const createOf = (classification: Classification, over = {}, given = rules) =>
  createBlockRecord(
    { block, classification, scope: null, samples: classification.shown.length, gcMs: 0, delayed: [], ...over },
    locate,
    given,
  );
const recordOf = (frames: readonly Frame[]) => createOf(classificationOf(sampleOf(frames)));

describe('the line of a block in a bundle', () => {
  it('is the user’s, not that of a dependency in the same file, which stays in the stack', () => {
    const record = recordOf([frame('sortBy', 1), frame('renderRows', 2)]);
    expect(record.location).toBe('src/render.ts:5:1');
    expect(record.stack).toEqual(['sortBy (node_modules/lodash/sortBy.js:1:1)', 'renderRows (src/render.ts:5:1)']);
  });

  it('is not that of one sample where most samples show a dependency alone', () => {
    const seen = [frame('renderRows', 2), frame('sortBy', 1), frame('sortBy', 1)].map((one) => sampleOf([one]));
    const record = createOf(classificationOf(...seen));
    expect([record.location, record.stack]).toEqual([null, ['sortBy (node_modules/lodash/sortBy.js:1:1)']]);
  });

  it('is the application’s where the samples that show none of it are cut: such a stack shows nothing', () => {
    const cut = sampleOf([frame('sortBy', 1)], { cut: true });
    const record = createOf(classificationOf(cut, sampleOf([frame('renderRows', 2)]), cut, cut));
    expect(record.location).toBe('src/render.ts:5:1');
  });

  it('is that of the caller which waits, where a dependency runs behind an `await`', () => {
    const record = recordOf([frame('sortBy', 1), { ...frame('renderRows', 2), async: true }]);
    expect(record.location).toBe('src/render.ts:5:1');
  });

  it('is left out with `stack: false`, with the stack and the method', () => {
    const methods = new ProviderMethods(new Map() as never);
    const record = createOf(classificationOf(sampleOf([frame('renderRows', 2)])), {}, {
      ...rules,
      methods,
      stack: false,
    } as never);
    expect(record).toMatchObject({ location: null, stack: [], method: null, samples: 1 });
  });

  it('is unknown where only dependencies ran', () => {
    expect(recordOf([frame('sortBy', 1)]).location).toBeNull();
  });
});

it('the line of a block is the one seen most often in the source, where the compiled code has one line', () => {
  const minified = join(folder, 'min.js');
  writeFileSync(minified, 'before();own();//# sourceMappingURL=min.js.map\n');
  writeFileSync(`${minified}.map`, JSON.stringify({ version: 3, sources: ['a.ts'], names: [], mappings: 'AAAA,SACA' }));
  const at = (column: number) => sampleOf([{ ...frame('own', 1), file: minified, column }]);
  expect(createOf(classificationOf(at(1), at(10), at(12))).location).toBe('a.ts:2:1');
});

describe('the size beside a block', () => {
  const request = { method: 'GET', url: '/', headers: {}, rawHeaders: [] };
  const noteOf = (state: RequestState) =>
    createOf({ ...classificationOf(sampleOf([frame('own', 2)])), request: state }, {}, {
      ...rules,
      replay: null,
    } as never).note;

  it('is what the application has said, and nothing else: the frameworks do not agree on where a response tells it', () => {
    const state = new RequestState(request as never, { getHeader: () => '7' } as never, 0, owner);
    expect(noteOf(state)).toBeNull();
    state.note = { rows: 9 };
    expect(noteOf(state)).toEqual({ rows: 9 });
  });
});

describe("the caller's trace", () => {
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const sent = `00-${trace}-b7ad6b7169203331-01`;

  it.each([
    [[sent], trace],
    [[sent, sent], null],
    [[`${sent}-more`], null],
    [[], null],
  ])('of the headers %j is %j', (values, traceId) => {
    const headers = { traceparent: values.join(', ') };
    const request = { method: 'GET', url: '/', headers, rawHeaders: values.flatMap((value) => ['traceparent', value]) };
    const named = new RequestState(request as never, null, 0, owner);
    expect(createOf({ ...classificationOf(), request: named }).request).toMatchObject({ traceId });
  });
});
