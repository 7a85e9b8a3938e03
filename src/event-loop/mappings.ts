/** As Node's `SourceMap` tells it: lines and columns count from 0. */
export interface Origin {
  readonly originalSource: string;
  readonly originalLine: number;
  readonly originalColumn: number;
}

/** The decoder between two segments: where it stands in the generated code, and what the last segment said. */
interface Mark {
  readonly at: number;
  readonly generatedLine: number;
  readonly generatedColumn: number;
  readonly source: number;
  readonly line: number;
  readonly column: number;
  readonly mapped: boolean;
}

/**
 * The `mappings` of a source map (ECMA-426, 9.2), read only as far as a position asks: Node's own `SourceMap` takes 26 times
 * their length, which a container may not have. The watchdog's thread is given this class as text: it uses nothing from outside.
 */
export class Mappings {
  private readonly text: string;
  private readonly sources: readonly string[];
  /** Where to begin again, in order. */
  private readonly marks: Mark[] = [
    { at: 0, generatedLine: 0, generatedColumn: 0, source: 0, line: 0, column: 0, mapped: false },
  ];
  private readonly charsBetweenMarks = 20_000;
  /** Value of each character of the alphabet. */
  private readonly digits = new Uint8Array(128);
  /** Of the segment that was read last: its numbers, and where it ended. */
  private readonly deltas = new Int32Array(5);
  private end = 0;

  /** Throws when these are no mappings, since what is read comes from a file of anybody's. */
  constructor({ mappings, sources }: { readonly mappings: string; readonly sources: readonly string[] }) {
    if (typeof mappings !== 'string') throw new TypeError('A source map without mappings');
    this.text = mappings;
    this.sources = [...sources];
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    for (let i = 0; i < alphabet.length; i++) this.digits[alphabet.charCodeAt(i)] = i;
  }

  /** Where the last segment at or before a position came from; empty when from nowhere. Never throws. */
  findEntry(generatedLine: number, generatedColumn: number): Partial<Origin> {
    const { text, deltas } = this;
    const mark = this.markBefore(generatedLine, generatedColumn);
    let { at, generatedLine: atLine, generatedColumn: atColumn, source, line, column, mapped } = mark;
    while (at < text.length && atLine <= generatedLine) {
      const char = text[at];
      if (char === ';') {
        atLine += 1;
        atColumn = 0;
        at += 1;
      } else if (char === ',') at += 1;
      else {
        const fields = this.readSegment(at);
        if (atLine === generatedLine && atColumn + deltas[0]! > generatedColumn) break;
        at = this.end;
        atColumn += deltas[0]!;
        mapped = fields >= 4;
        if (mapped) {
          source += deltas[1]!;
          line += deltas[2]!;
          column += deltas[3]!;
        }
        if (at >= this.marks.at(-1)!.at + this.charsBetweenMarks) {
          this.marks.push({ at, generatedLine: atLine, generatedColumn: atColumn, source, line, column, mapped });
        }
      }
    }
    const originalSource = mapped ? this.sources[source] : undefined;
    return originalSource === undefined ? {} : { originalSource, originalLine: line, originalColumn: column };
  }

  private markBefore(line: number, column: number): Mark {
    const { marks } = this;
    for (let i = marks.length - 1; i > 0; i--) {
      const mark = marks[i]!;
      if (mark.generatedLine < line || (mark.generatedLine === line && mark.generatedColumn <= column)) return mark;
    }
    return marks[0]!;
  }

  /** Reads a segment's numbers into `deltas`: how many there were. */
  private readSegment(from: number): number {
    const { text, digits, deltas } = this;
    let fields = 0;
    let at = from;
    while (at < text.length && text[at] !== ',' && text[at] !== ';') {
      let value = 0;
      let shift = 0;
      let digit: number;
      do {
        // Past the end this is 0, which ends the number.
        digit = digits[text.charCodeAt(at)] ?? 0;
        at += 1;
        value |= (digit & 31) << shift;
        shift += 5;
      } while ((digit & 32) !== 0);
      // The lowest bit is the sign.
      deltas[fields % 5] = (value & 1) === 1 ? -(value >>> 1) : value >>> 1;
      fields += 1;
    }
    this.end = at;
    return fields;
  }
}
