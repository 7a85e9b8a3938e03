import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SourceLines } from '../../../src/event-loop/source-lines.js';

const payload = (mappings: string, sources: string[]): SourceMapPayload => ({
  file: '',
  version: 3,
  sources,
  sourcesContent: [],
  names: [],
  mappings,
  sourceRoot: '',
});

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
function vlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let text = '';
  do {
    const digit = rest & 31;
    rest >>>= 5;
    text += ALPHABET[rest > 0 ? digit | 32 : digit];
  } while (rest > 0);
  return text;
}

interface Segment {
  readonly columns: number;
  readonly from: { source: number; line: number; column: number; named: boolean } | null;
}

/** What a generator writes for lines of segments. */
function encode(lines: readonly (readonly Segment[])[]): string {
  const last = { source: 0, line: 0, column: 0 };
  return lines
    .map((segments) =>
      segments
        .map(({ columns, from }) => {
          if (from === null) return vlq(columns);
          const text = [columns, from.source - last.source, from.line - last.line, from.column - last.column].map(vlq);
          Object.assign(last, { source: from.source, line: from.line, column: from.column });
          return text.join('') + (from.named ? 'A' : '');
        })
        .join(','),
    )
    .join(';');
}

const origin = fc.record({
  source: fc.nat(5),
  line: fc.nat(100_000),
  column: fc.nat(40_000),
  named: fc.boolean(),
});
const segment = fc.record({ columns: fc.integer({ min: 1, max: 50 }), from: fc.option(origin, { freq: 8 }) });
const lines = fc.array(fc.array(segment, { maxLength: 60 }), { minLength: 1, maxLength: 30 });
const sources = Array.from({ length: 6 }, (_, i) => `src/${i}.ts`);

/** Of both, what a location is made of. */
const found = (map: { findEntry(line: number, column: number): object }, line: number, column: number) => {
  const { originalSource, originalLine, originalColumn } = map.findEntry(line, column) as Record<string, unknown>;
  return originalSource == null ? null : [originalSource, originalLine, originalColumn];
};

describe('positions in the mappings of a source map', () => {
  it('are those that Node finds', () => {
    const places = fc.array(fc.tuple(fc.nat(32), fc.nat(3_000)), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(lines, places, (written, asked) => {
        const given = payload(`${encode(written)};`, sources);
        const [ours, node] = [SourceLines.decode(given), new SourceMap(given)];
        // (A last segment of one number is read past its end by Node 20, hence the semicolon.)
        // What was asked before decides where reading begins again, so the order of questions is part of the case.
        for (const [line, column] of asked) expect(found(ours, line, column)).toEqual(found(node, line, column));
      }),
      { numRuns: 150 },
    );
  });

  it('are those that Node finds, however far into a map of hundreds of thousands of characters', () => {
    const line = (n: number): Segment[] =>
      Array.from({ length: 400 }, (_, i) => ({
        columns: (i % 7) + 1,
        from: { source: (n + i) % 6, line: n * 3 + i, column: (i * 17) % 90, named: i % 3 === 0 },
      }));
    const given = payload(encode(Array.from({ length: 120 }, (_, n) => line(n))), sources);
    expect(given.mappings.length).toBeGreaterThan(200_000);
    const [ours, node] = [SourceLines.decode(given), new SourceMap(given)];
    for (const [at, column] of [
      [119, 900],
      [0, 0],
      [60, 3],
      [61, 1_500],
      [60, 2],
      [118, 0],
      [7, 800],
    ] as const) {
      expect(found(ours, at, column)).toEqual(found(node, at, column));
    }
  });

  it('are those that Node finds in the map of a compiler', () => {
    const map = JSON.parse(
      readFileSync(new URL('../../../build/src/event-loop/source-lines.js.map', import.meta.url), 'utf8'),
    ) as SourceMapPayload;
    const [ours, node] = [SourceLines.decode(map), new SourceMap(map)];
    for (let line = 0; line < 120; line++) {
      for (const column of [0, 5, 17, 40]) expect(found(ours, line, column)).toEqual(found(node, line, column));
    }
  });

  it('that no text of anything else holds are nowhere, and nothing throws', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.nat(5), fc.nat(50), (text, line, column) => {
        SourceLines.decode(payload(text, [])).findEntry(line, column);
        expect(found(SourceLines.decode(payload(text, [])), line, column)).toBeNull();
      }),
    );
  });
});
