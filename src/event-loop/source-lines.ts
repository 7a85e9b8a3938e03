import type { SourceMap, SourceMapPayload } from 'node:module';

/** A place in a file, as the engine tells it: lines and columns count from 1. */
export interface Position {
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
}

type Finder = Pick<SourceMap | Mappings, 'findEntry'>;

/**
 * Where a position is in the source that the user wrote. Reads `sourceMappingURL` comments: Node itself knows source maps
 * only with `--enable-source-maps`, which is for the whole process and not ours to switch on.
 *
 * The sampler's thread is given this class as text (see sampler-source.ts): it must use nothing from outside itself.
 */
export class SourceLines {
  private readonly maps = new Map<string, Finder | null>();
  private keptBytes = 0;
  private readonly fs = process.getBuiltinModule('node:fs');
  private readonly module = process.getBuiltinModule('node:module');
  private readonly path = process.getBuiltinModule('node:path');
  private readonly url = process.getBuiltinModule('node:url');

  constructor(
    /** Null: it has been deleted, and paths are not shortened. */
    private readonly workingDirectory: string | null,
    /** Positions in files with longer mappings stay those of the compiled code; 0: no file is read. */
    private readonly maxMappingBytes: number,
    private readonly Decoded: typeof Mappings,
  ) {}

  /** Of what a loader makes of such a file, Node may know the map, in the thread that loaded it; the disk does not. */
  static isTypeScript(fileOrUrl: string): boolean {
    return /\.[cm]?tsx?(?:\?.*)?$/.test(fileOrUrl);
  }

  /** `file:line:column`, relative to the working directory where the file lies in it. Never throws. */
  locationOf({ file: fileOrUrl, line, column }: Position): string | null {
    if (fileOrUrl === null) return null;
    const file = this.pathOf(fileOrUrl);
    const entry: Partial<Origin> | undefined = this.mapOf(file, fileOrUrl)?.findEntry(line - 1, column - 1);
    // A source may be null in a map.
    if (typeof entry?.originalSource !== 'string') {
      return `${this.shortened(file)}:${line}:${column}`;
    }
    const source = this.shortened(this.sourcePath(file, entry.originalSource));
    return `${source}:${entry.originalLine! + 1}:${entry.originalColumn! + 1}`;
  }

  private shortened(file: string): string {
    const { path, workingDirectory } = this;
    if (!path.isAbsolute(file) || workingDirectory === null) return file;
    const below = path.relative(workingDirectory, file);
    const inside = below !== '' && !below.startsWith('..') && !path.isAbsolute(below);
    return (inside ? below : file).split(path.sep).join('/');
  }

  private mapOf(file: string, asLoaded: string): Finder | null {
    if (!this.path.isAbsolute(file)) return null;
    // A dependency's sources are seldom installed, and may be named as if they lay in the application.
    if (/[/\\]node_modules[/\\]/.test(file)) return null;
    const known = this.maps.get(asLoaded);
    if (known !== undefined) return known;
    let map: Finder | null = null;
    try {
      map = SourceLines.isTypeScript(file) ? (this.module.findSourceMap(asLoaded) ?? null) : this.readMap(file);
    } catch {
      // No map, a broken one, or a file that is gone: the position in the compiled code is still true.
    }
    this.maps.set(asLoaded, map);
    return map;
  }

  private readMap(file: string): Finder | null {
    const text = this.maxMappingBytes === 0 ? null : this.textOf(file);
    if (text === null) return null;
    const { sources, sourceRoot, mappings, ...rest } = JSON.parse(text) as SourceMapPayload;
    // Of sections Node makes 26 times their length.
    const bytes = 'sections' in rest ? text.length * 10 : mappings.length;
    if (bytes > this.maxMappingBytes) return null;
    this.keptBytes += bytes;
    if (this.keptBytes > this.maxMappingBytes) {
      this.maps.clear();
      this.keptBytes = bytes;
    }
    if ('sections' in rest) return new this.module.SourceMap(JSON.parse(text) as SourceMapPayload);
    // `findEntry` does not apply the root. The sources' own text is not kept.
    const root = sourceRoot ?? '';
    const paths = root === '' ? sources : sources.map((source) => this.path.posix.join(root, source));
    return new this.Decoded({ sources: paths, mappings });
  }

  /** The text of a file's map: inside it, or beside it. */
  private textOf(file: string): string | null {
    const { fs, path } = this;
    const comment = '//# sourceMappingURL=';
    // With the sources' text in them, maps are several times as large as their mappings.
    const maxFileBytes = this.maxMappingBytes * 2.5;
    if (fs.statSync(file).size > maxFileBytes) return null;
    const code = fs.readFileSync(file, 'utf8');
    const at = code.lastIndexOf(comment);
    if (at < 0) return null;
    const url = code
      .slice(at + comment.length)
      .split(/[\r\n]/, 1)[0]!
      .trim();
    const inline = /^data:application\/json[^,]*;base64,/.exec(url);
    if (inline !== null) return Buffer.from(url.slice(inline[0].length), 'base64').toString('utf8');
    const mapFile = path.resolve(path.dirname(file), decodeURIComponent(url));
    return fs.statSync(mapFile).size > maxFileBytes ? null : fs.readFileSync(mapFile, 'utf8');
  }

  /** Sources are relative to the map, which tools put beside the file. */
  private sourcePath(file: string, source: string): string {
    if (source.startsWith('file:')) return this.pathOf(source);
    // `webpack://app/./src/main.ts`
    const path = source.replace(/^[a-z][\w+.-]*:\/\/[^/]*\/(?:\.\/)?/i, '');
    return path === source ? this.path.resolve(this.path.dirname(file), source) : path;
  }

  private pathOf(fileOrUrl: string): string {
    if (!fileOrUrl.startsWith('file:')) return fileOrUrl;
    try {
      return this.url.fileURLToPath(fileOrUrl);
    } catch {
      return fileOrUrl;
    }
  }
}

/** As Node's `SourceMap` tells it: lines and columns count from 0. */
export interface Origin {
  readonly originalSource: string;
  readonly originalLine: number;
  readonly originalColumn: number;
}

/** Where the decoder stands in the generated code, and what the last segment said. */
interface State {
  at: number;
  generatedLine: number;
  generatedColumn: number;
  source: number;
  line: number;
  column: number;
  mapped: boolean;
}

/**
 * The `mappings` of a source map (ECMA-426, 9.2), read only as far as a position asks: Node's own `SourceMap` takes 26 times
 * their length, which a container may not have. The sampler's thread is given this class as text: it uses nothing from outside.
 */
export class Mappings {
  private readonly text: string;
  private readonly sources: readonly string[];
  /** Where to begin again, in order. */
  private readonly marks: Readonly<State>[] = [
    { at: 0, generatedLine: 0, generatedColumn: 0, source: 0, line: 0, column: 0, mapped: false },
  ];
  private readonly charsBetweenMarks = 10_000;
  /** Value of each character of the alphabet. */
  private readonly digits = new Uint8Array(128);

  /** Throws when these are no mappings, since what is read comes from a file of anybody's. */
  constructor({ mappings, sources }: { readonly mappings: string; readonly sources: readonly string[] }) {
    if (typeof mappings !== 'string') throw new TypeError('A source map without mappings');
    this.text = mappings;
    this.sources = [...sources];
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    for (let i = 0; i < alphabet.length; i++) this.digits[alphabet.charCodeAt(i)] = i;
  }

  /** Where the last segment at or before a position came from; empty when from nowhere. Never throws. */
  findEntry(line: number, column: number): Partial<Origin> {
    const { text, marks } = this;
    const isBefore = ({ generatedLine, generatedColumn }: State): boolean =>
      generatedLine < line || (generatedLine === line && generatedColumn <= column);
    const state = { ...(marks.findLast(isBefore) ?? marks[0]!) };
    const segments = /;|[^,;]+/g;
    segments.lastIndex = state.at;
    while (state.generatedLine <= line) {
      const segment = segments.exec(text)?.[0];
      if (segment === undefined) break;
      if (segment === ';') {
        state.generatedLine += 1;
        state.generatedColumn = 0;
        continue;
      }
      const [columns = 0, source = 0, lines = 0, sourceColumns] = this.numbersOf(segment);
      if (state.generatedLine === line && state.generatedColumn + columns > column) break;
      state.at = segments.lastIndex;
      state.generatedColumn += columns;
      state.mapped = sourceColumns !== undefined;
      state.source += source;
      state.line += lines;
      state.column += sourceColumns ?? 0;
      if (state.at >= marks.at(-1)!.at + this.charsBetweenMarks) marks.push({ ...state });
    }
    const originalSource = state.mapped ? this.sources[state.source] : undefined;
    return originalSource === undefined
      ? {}
      : { originalSource, originalLine: state.line, originalColumn: state.column };
  }

  private numbersOf(segment: string): number[] {
    const numbers: number[] = [];
    let [value, shift] = [0, 0];
    for (let i = 0; i < segment.length; i++) {
      const digit = this.digits[segment.charCodeAt(i)] ?? 0;
      value |= (digit & 31) << shift;
      shift += 5;
      if ((digit & 32) !== 0) continue;
      // The lowest bit is the sign.
      numbers.push((value & 1) === 1 ? -(value >>> 1) : value >>> 1);
      [value, shift] = [0, 0];
    }
    return numbers;
  }
}
