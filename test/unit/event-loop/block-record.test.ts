import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RequestState } from '../../../src/core/request-state.js';
import { blockRecordOf, CarefulReader, locateIn, type Locate } from '../../../src/event-loop/block-record.js';
import type { Classification } from '../../../src/event-loop/classify.js';
import type { Frame, Look } from '../../../src/event-loop/frame.js';
import { SecretNames } from '../../../src/core/redact.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { Mappings, SourceMaps } from '../../../src/event-loop/source-maps.js';

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
  seq: 1,
  startMs: 0,
  endMs: 100,
  cpuRatio: 1,
  lost: () => ({ starvedMs: 0, runDelayMs: 0 }),
  polls: 1,
};
const owner = { attached: null, nextId: () => 'id', findRoute: () => null };
const told: string[] = [];
const reader = new CarefulReader(
  new OncePerCause({ log() {}, error() {}, warn: (message) => void told.push(message) }, () => 0),
);
const rules = {
  secrets: new SecretNames([]),
  replay: { allowHeaders: [], maxBodyBytes: 0 },
  ownFolder: null,
  reader,
  methods: null,
};
const maps = new SourceMaps(folder, 1_000_000, Mappings);
const locate: Locate = (position) => maps.locationOf(position);
const classificationOf = (frames: readonly Frame[]): Classification<RequestState> => {
  const look: Look<RequestState> = {
    requestedMs: 10,
    servedMs: 11,
    state: null,
    source: null,
    unknown: 'unseen',
    frames,
    cut: false,
    changes: 0,
    changesBefore: 0,
    settledNext: null,
  };
  return {
    cause: 'javascript',
    culprit: null,
    suspect: null,
    waited: 'unknown',
    ran: [],
    provenMs: 90,
    shown: [look],
  };
};
const recordOf = (frames: readonly Frame[]) => blockRecordOf(block, classificationOf(frames), 0, [], locate, rules);

describe('the line of a block in a bundle', () => {
  it('is the user’s, not that of a dependency in the same file, which stays in the stack', () => {
    const record = recordOf([frame('sortBy', 1), frame('renderRows', 2)]);
    expect(record.location).toBe('src/render.ts:5:1');
    expect(record.stack).toEqual(['sortBy (node_modules/lodash/sortBy.js:1:1)', 'renderRows (src/render.ts:5:1)']);
  });

  it('is not the one look at code of the user’s where most looks show a dependency’s alone', () => {
    const seen = [frame('renderRows', 2), frame('sortBy', 1), frame('sortBy', 1)].map((one) => classificationOf([one]));
    const classification = { ...classificationOf([]), shown: seen.flatMap(({ shown }) => shown) };
    const record = blockRecordOf(block, classification, 0, [], locate, rules);
    expect([record.location, record.stack]).toEqual([null, ['sortBy (node_modules/lodash/sortBy.js:1:1)']]);
  });

  it('is the user’s where the looks that show none of it are cut: such a stack shows nothing', () => {
    const cut = { ...classificationOf([]).shown[0]!, cut: true };
    const classification = { ...classificationOf([frame('renderRows', 2)]) };
    const shown = [cut, ...classification.shown, cut, { ...cut, frames: [frame('sortBy', 1)] }];
    const record = blockRecordOf(block, { ...classification, shown }, 0, [], locate, rules);
    expect(record.location).toBe('src/render.ts:5:1');
  });

  it('is unknown where only dependencies ran', () => {
    expect(recordOf([frame('sortBy', 1)]).location).toBeNull();
  });
});

it('the line of a block is the one seen most often in the source, where the compiled code has one line', () => {
  const minified = join(folder, 'min.js');
  writeFileSync(minified, 'before();own();//# sourceMappingURL=min.js.map\n');
  writeFileSync(`${minified}.map`, JSON.stringify({ version: 3, sources: ['a.ts'], names: [], mappings: 'AAAA,SACA' }));
  const at = (column: number) => ({ ...classificationOf([{ ...frame('own', 1), file: minified, column }]).shown[0]! });
  const classification = { ...classificationOf([]), shown: [at(1), at(10), at(12)] };
  const record = blockRecordOf(block, classification, 0, [], locate, rules);
  expect(record.location).toBe('a.ts:2:1');
});

it('positions that the watchdog has not told are those of the compiled code', async () => {
  const classification = classificationOf([
    frame('own', 2),
    { ...frame('read', 7), file: 'node:fs' },
    { ...frame('loaded', 8), file: '/srv/app/main.ts' },
    frame('own', 2),
  ]);
  const own = { file: bundle, line: 2, column: 1 };
  const compiled = ({ line }: { line: number }) => `compiled:${line}`;
  const asked: unknown[] = [];
  const told = await locateIn(classification, async (positions) => (asked.push(positions), ['src/a.ts:5:7']), compiled);
  expect(asked).toEqual([[own]]);
  expect([told(own), told({ ...own, line: 9 })]).toEqual(['src/a.ts:5:7', 'compiled:9']);
  const silent = await locateIn(classification, async () => null, compiled);
  expect(silent(own)).toBe('compiled:2');
});

describe('the size beside a block', () => {
  const request = { method: 'GET', url: '/', headers: {} };
  const noteOf = (state: RequestState) =>
    blockRecordOf(block, { ...classificationOf([frame('own', 2)]), culprit: state }, 0, [], locate, {
      ...rules,
      replay: null,
    }).note;

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
    const culprit = new RequestState(request as never, null, 0, owner);
    const found = { ...classificationOf([frame('own', 2)]), culprit };
    expect(blockRecordOf(block, found, 0, [], locate, rules).request).toMatchObject({ traceId });
  });
});

describe('a request on which the application has put what cannot be read', () => {
  const throwing = (what: string) => ({
    get() {
      throw new Error(`secret of ${what}`);
    },
  });

  it('leaves its record without that, and is reported once', () => {
    told.length = 0;
    const request = Object.defineProperties(
      {},
      Object.fromEntries(
        ['method', 'url', 'originalUrl', 'headers', 'socket', 'body', 'rawHeaders'].map((name) => [
          name,
          throwing(name),
        ]),
      ),
    );
    const response = Object.defineProperty({}, 'getHeader', throwing('response'));
    const owner = {
      attached: null,
      nextId: () => 'id',
      findRoute() {
        throw new Error('secret of route');
      },
    };
    const state = new RequestState(request as never, response as never, 0, owner);
    const culprit = { ...classificationOf([frame('own', 2)]), culprit: state };
    const build = () => blockRecordOf(block, culprit, 0, [state, state], locate, rules);
    expect(build()).toMatchObject({ request: { method: '_OTHER', route: '', url: '', traceId: null }, curl: null });
    const reports = told.length;
    expect(reports).toBeGreaterThan(3);
    build();
    expect(told).toHaveLength(reports);
    expect(told.join()).not.toContain('secret');
  });
});
